"""Names of parameters for people."""

from __future__ import annotations

from seqopt.utils.parameter_names import parameters_in_words

NUMBERS = {
    "kernels[10].lengthscale": 2.0,
    "kernels[2].gap_decay": 0.25,
    "outputscale": 1.5,
    "kernels[2].weight": 0.75,
    "kernels[10].weight": 0.25,
    "note": "a text",
}


def test_parameters_stand_by_their_kernels_in_order_with_weights_first() -> None:
    kinds = [*["NgramKernel"] * 2, "SubsequenceKernel", *["NgramKernel"] * 8]
    assert parameters_in_words(NUMBERS, kinds) == [
        "output scale 1.5",
        "sub-sequences: weight 0.75, gap decay 0.25",
        "n-grams: weight 0.25, length scale 2",
    ]


def test_two_kernels_of_one_type_have_a_line_each_and_unknown_ones_their_number() -> None:
    parameters = {"kernels[0].weight": 0.5, "kernels[1].weight": 0.5}
    assert parameters_in_words(parameters, ["NgramKernel"] * 2) == ["n-grams: weight 0.5"] * 2
    assert parameters_in_words(parameters) == ["kernel 1: weight 0.5", "kernel 2: weight 0.5"]
    assert parameters_in_words({}) == []
