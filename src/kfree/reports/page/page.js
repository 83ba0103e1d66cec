"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const make = (name, words, kind) => {
    const made = document.createElement(name);
    made.textContent = words;
    if (kind) made.className = kind;
    return made;
  };

  // the slider: colours of the points, sizes, and the line of the tree
  const stops = JSON.parse(find("data").textContent);
  const slider = find("number");
  if (slider) {
    slider.parentElement.hidden = false;
    const sizes = find("sizes");
    const drawing = document.querySelector(".map");
    const points = [...drawing.querySelectorAll(".points circle")];
    const numbers = drawing.querySelector(".numbers");
    const lines = [...document.querySelectorAll(".tree .stop")];
    const first = { sizes: [...sizes.childNodes], numbers: [...numbers.childNodes], at: +slider.value };

    const sizeOf = ([name, shade, share, words], k) => {
      const item = make("li", "", "c" + shade);
      const label = make("span", " " + name, "name");
      label.prepend(make("b", k));
      const bar = make("i", "");
      bar.style.width = share + "%";
      item.append(label, make("span", words, "value"), bar);
      return item;
    };

    // at the middle of each cluster, or on every point where points are things of their own
    const numbersOf = (at) => {
      const sums = new Map();
      points.forEach((point, i) => {
        const key = numbers.dataset.each ? i : at[i];
        const [, n, x, y] = sums.get(key) || [0, 0, 0, 0];
        sums.set(key, [at[i], n + 1, x + +point.getAttribute("cx"), y + +point.getAttribute("cy")]);
      });
      if (sums.size > {{ numbered }}) return [];
      return [...sums.values()].map(([k, n, x, y]) => {
        const word = document.createElementNS("http://www.w3.org/2000/svg", "text");
        word.setAttribute("x", x / n);
        word.setAttribute("y", y / n + 5);
        word.setAttribute("text-anchor", "middle");
        word.textContent = k;
        return word;
      });
    };

    const show = () => {
      const place = +slider.value;
      const stop = stops[place];
      points.forEach((point, i) => point.setAttribute("class", "c" + stop.sizes[stop.at[i]][1]));
      const home = place === first.at;
      sizes.replaceChildren(...(home ? first.sizes : stop.sizes.map(sizeOf)));
      numbers.replaceChildren(...(home ? first.numbers : numbersOf(stop.at)));
      lines.forEach((line, i) => line.classList.toggle("now", i === place));
      find("count").textContent = stop.sizes.length;
      find("said").textContent = stop.said;
      find("back").hidden = home;
      slider.setAttribute("aria-valuetext", stop.sizes.length);
    };

    const go = (place) => {
      slider.value = place;
      show();
    };
    slider.addEventListener("input", show);
    find("back").addEventListener("click", () => {
      go(first.at);
      slider.focus();
    });
    lines.forEach((line, i) => line.addEventListener("click", () => go(i)));
    if (+slider.value !== first.at || slider.value !== slider.defaultValue) go(+slider.defaultValue);
  }

  // search: cards whose words hold all that is looked for
  const search = find("search");
  if (search) {
    const cards = [...document.querySelectorAll(".card")].map((card) => [card, card.textContent.toLowerCase()]);
    const noun = find("found").textContent.replace(/^\S+ /, "");
    search.addEventListener("input", () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      for (const [card, words] of cards) {
        card.hidden = !wanted.every((word) => words.includes(word));
        found += !card.hidden;
      }
      find("found").textContent = wanted.length ? `${found} of ${cards.length} ${noun}` : `${cards.length} ${noun}`;
    });
  }

  // tables that are wider than their place can be scrolled by keyboard
  const reach = () => {
    for (const wide of document.querySelectorAll(".wide, .sizes")) {
      const over = wide.scrollWidth > wide.clientWidth + 1 || wide.scrollHeight > wide.clientHeight + 1;
      over ? wide.setAttribute("tabindex", 0) : wide.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);
  reach();

  // what is folded is printed, too
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((some) => (some.open = true));
  });
  addEventListener("afterprint", () => folded.forEach((some) => (some.open = false)));
})();
