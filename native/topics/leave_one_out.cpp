// The closing pass over the cells of a document-term table: every cell is judged by the counts of the others.
#include <type_traits>

#include "border.h"
#include "topics/cells.h"
#include "topics/lanes.h"
#include "topics/powers.h"

namespace {

using corpus::Sixteen;
using Table = Mat<const float>;
using Floats = Vec<const float>;

// How the counts of the others are made of all counts; PLAIN where mix is 1.
template <bool PLAIN> struct Others {
    float least, mix, burst;

    KF_INLINE Sixteen raised(Sixteen value) const {
        if constexpr (PLAIN) return value;
        return choose(value > 0.0f, corpus::exp_of(corpus::log_of(value) * mix), Sixteen{});
    }
    KF_INLINE Sixteen times(Sixteen value) const { return PLAIN ? value : value * mix; }

    // What a cell would find in 16 topics without itself: see the twin.
    KF_INLINE Sixteen without_own(Sixteen topic, Sixteen share, float tokens, float part, Sixteen scale,
                                  Sixteen floor) const {
        const Sixteen own = tokens * topic * raised(share), taken = own * part * scale, drawn = times(own);
        Sixteen word = larger(topic - taken, floor);
        word = larger(word - 2.0f * burst * taken, 0.5f * word);
        Sixteen document = larger(share - drawn, Sixteen(least));
        document = larger(document - 2.0f * burst * drawn, 0.5f * document);
        return word * raised(document);
    }
};

template <bool PLAIN> void close_all_documents(Others<PLAIN> others, Floats data, Labels rows, Rows indptr,
                                               Table topics, Table share, Floats weight, Floats pseudo, Floats scale,
                                               Vec<float> own, Vec<float> ratio, Mat<float> total) {
    const i64 width = topics.p;
    const Room<float> found(width);
    for (i64 w = 0; w < topics.n; ++w)
        for (i64 k = indptr[w]; k < indptr[w + 1]; ++k) {
            const i64 j = rows[k];
            const float *topic = topics[w], *theta = share[j];
            Sixteen chance{};
            for (i64 p = 0; p < width; p += 16)
                chance += Sixteen::at(topic + p) * others.raised(Sixteen::at(theta + p));
            const float tokens = (1.0f + others.burst * (data[k] - 1.0f)) / sum_of_lanes(chance);
            own[k] = tokens;
            chance = Sixteen{};
            for (i64 p = 0; p < width; p += 16) {
                const Sixteen scales = Sixteen::at(scale.data + p);
                const Sixteen value = others.without_own(Sixteen::at(topic + p), Sixteen::at(theta + p), tokens,
                                                         weight[j], scales, pseudo[w] * scales);
                value.put(found.data + p);
                chance += value;
            }
            const float factor = ratio[k] = data[k] / sum_of_lanes(chance);
            float* into = total[j];
            for (i64 p = 0; p < width; p += 16)
                (Sixteen::at(into + p) + factor * Sixteen::at(found.data + p)).put(into + p);
        }
}

// 16 topics at a time, for which all that does not depend on the cell is then at hand.
template <bool PLAIN> void close_some_words(Others<PLAIN> others, Floats own, Floats ratio, Labels rows, Rows indptr,
                                            i64 first, i64 last, Table topics, Table share, Floats weight,
                                            Floats pseudo, Floats scale, Mat<float> total) {
    for (i64 w = first; w < last; ++w) {
        if (indptr[w] == indptr[w + 1]) continue;
        for (i64 p = 0; p < topics.p; p += 16) {
            const Sixteen topic = Sixteen::at(topics[w] + p), scales = Sixteen::at(scale.data + p);
            const Sixteen floor = pseudo[w] * scales;
            Sixteen sum{};
            for (i64 k = indptr[w]; k < indptr[w + 1]; ++k) {
                const Sixteen theta = Sixteen::at(share[rows[k]] + p);
                sum += ratio[k] * others.without_own(topic, theta, own[k], weight[rows[k]], scales, floor);
            }
            (Sixteen::at(total[w] + p) + sum).put(total[w] + p);
        }
    }
}

}  // namespace

static void close_documents(Floats data, Labels rows, Rows indptr, Table topics, Table share, Floats weight,
                            Floats pseudo, Floats scale, double least, double mix, double burst, Vec<float> own,
                            Vec<float> ratio, Mat<float> total) {
    corpus::require_padding(topics);
    corpus::Span(indptr, data.n);
    const auto close = [&](auto plain) {
        const Others<plain> others{float(least), float(mix), float(burst)};
        close_all_documents(others, data, rows, indptr, topics, share, weight, pseudo, scale, own, ratio, total);
    };
    mix == 1.0 ? close(std::true_type()) : close(std::false_type());
}

static void close_words(Floats own, Floats ratio, Labels rows, Rows indptr, i64 first, i64 last, Table topics,
                        Table share, Floats weight, Floats pseudo, Floats scale, double least, double mix, double burst,
                        Mat<float> total) {
    corpus::require_padding(topics);
    const corpus::Span all(indptr, first, last, own.n);
    require(corpus::all_below(rows.part(all.start, all.stop), share.n), "rows must hold documents");
    const auto close = [&](auto plain) {
        const Others<plain> others{float(least), float(mix), float(burst)};
        close_some_words(others, own, ratio, rows, indptr, first, last, topics, share, weight, pseudo, scale, total);
    };
    mix == 1.0 ? close(std::true_type()) : close(std::false_type());
}

static const border::Kernel kernels[] = {
    border::kernel<close_documents>(
        "close_documents(data[m], rows[m]<D, indptr[V+1], topics[V,p], share[D,p], weight[D], pseudo[V], scale[p], "
        "least, mix, burst, own[m], ratio[m], total[D,p])"),
    border::kernel<close_words>(
        "close_words(own[m], ratio[m], rows[m], indptr[V+1], first, last, topics[V,p], share[D,p], weight[D], "
        "pseudo[V], scale[p], least, mix, burst, total[V,p])"),
};
static const border::Publish publish(kernels);
