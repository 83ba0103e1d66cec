"""One table for each class says what its parameters may be: checker, signature and docs agree with it."""

import inspect
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kfree
from kfree.families import FAMILIES
from kfree.models.parameters import Choice, Flag, Given, Nothing, Number, Or, check_parameters
from support.docstrings import parameters

CLASSES = [
    kfree.DPMeans,
    kfree.HDPMeans,
    kfree.HDPTopics,
    kfree.BPMeans,
    kfree.KFeatures,
    kfree.StepwiseKFeatures,
    kfree.VariationalDPMixture,
    kfree.KernelDPMixture,
    kfree.GibbsDPMixture,
    kfree.GibbsIBP,
    kfree.TablePreparer,
]
EVERY = [(cls, name) for cls in CLASSES for name in cls._parameters]


def kinds(entry):
    return entry.kinds if isinstance(entry, Or) else (entry,)


def names(entry):
    return {name for kind in kinds(entry) if isinstance(kind, Choice) for name in kind.names}


def has(entry, which):
    return any(isinstance(kind, which) for kind in kinds(entry))


@pytest.mark.parametrize("cls", CLASSES)
def test_table_signature_and_docstring_have_the_same_parameters(cls):
    signature = list(inspect.signature(cls).parameters)
    assert sorted(cls._parameters) == sorted(signature)
    assert sorted(parameters(cls)) == sorted(signature)


@pytest.mark.parametrize("cls", CLASSES)
def test_defaults_are_allowed_and_documented(cls):
    cls()._check_parameters()
    for name, parameter in inspect.signature(cls).parameters.items():
        assert parameters(cls)[name].default == parameter.default, name


@pytest.mark.parametrize(("cls", "name"), EVERY)
def test_what_is_documented_is_what_is_checked(cls, name):
    entry, said = cls._parameters[name], parameters(cls)[name]
    if said.kind.startswith("str"):  # many names, which the text explains
        assert all(f'"{known}"' in said.text for known in (FAMILIES if name == "divergence" else names(entry)))
        return
    assert set(re.findall(r'"([^"]+)"', said.kind)) == names(entry)
    if name == "random_state":  # scikit-learn's own
        return
    integers = {kind.integer for kind in kinds(entry) if isinstance(kind, Number)}
    words = set(re.findall(r"\w+", re.sub(r'"[^"]+"', "", said.kind)))
    assert ("int" in words) == (True in integers)
    assert bool(words & {"float", "floats"}) == (False in integers)
    assert ("bool" in words) == has(entry, Flag) or name == "verbose"  # True is 1
    assert (said.default is None or "None" in words) == has(entry, Nothing)


@pytest.mark.parametrize(("cls", "name"), EVERY)
def test_what_no_parameter_may_be_is_an_error_that_names_it(cls, name):
    if has(cls._parameters[name], Given):  # arrays and such are looked at later
        return
    for wrong in ("no such name", np.nan, -1e300, 3j):
        with pytest.raises((TypeError, ValueError), match=rf"{name} .*got|Unknown {name} 'no such name'. Choose"):
            check_parameters(cls._parameters, {name: wrong})


NUMBER = Number(least=2, most=5, integer=True, but=3, hint="It is a count.")
EITHER = Or(Choice("auto", "none"), NUMBER, Nothing())


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        (NUMBER, 1, "some must be >= 2, got 1. It is a count."),
        (NUMBER, 6, "some must be at most 5, got 6. It is a count."),
        (NUMBER, 3, "some must not be 3, got 3. It is a count."),
        (NUMBER, 2.0, "some must be an integer, got float 2.0. It is a count."),
        (NUMBER, True, "some must be an integer, got bool True. It is a count."),
        (Number(above=0.0, finite=True), np.inf, "some must be finite, got inf."),
        (EITHER, 1, "some must be >= 2, got 1. It is a count. Pass 'auto', 'none', an integer from 2 to 5, or None."),
        (EITHER, "a", "Unknown some 'a'. Choose one of 'auto', 'none', an integer from 2 to 5, or None."),
        (EITHER, [1], "some must be an integer, got list [1]. It is a count. Pass 'auto', 'none'"),
        (Or(Choice("a"), Given("an array")), None, "some must be one of 'a', or an array, got NoneType."),
        (Flag(), 1, "some must be True or False, got int 1."),
    ],
)
def test_messages_say_what_is_wrong_and_what_to_do(entry, value, message):
    with pytest.raises((TypeError, ValueError)) as told:
        check_parameters({"some": entry}, {"some": value})
    assert str(told.value).startswith(message)


anything = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["auto", "none", "x"]))


@settings(max_examples=200, deadline=None)
@given(least=st.floats(-10, 10), width=st.floats(0, 10), integer=st.booleans(), finite=st.booleans(), value=anything)
def test_a_number_is_allowed_if_and_only_if_it_is_in_the_range(least, width, integer, finite, value):
    entry = Or(Choice("auto"), Number(least=least, most=least + width, integer=integer, finite=finite))
    if isinstance(value, str):
        allowed = value == "auto"
    else:
        number = isinstance(value, int if integer else int | float) and not isinstance(value, bool)
        allowed = number and least <= value <= least + width
    if allowed:
        check_parameters({"some": entry}, {"some": value})
    else:
        with pytest.raises((TypeError, ValueError), match="some"):
            check_parameters({"some": entry}, {"some": value})
