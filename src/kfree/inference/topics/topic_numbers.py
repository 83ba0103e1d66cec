"""The constants of topics."""

from typing import NamedTuple


class TopicNumbers(NamedTuple):
    """Constants of topics. Those marked "speed" change how long a fit takes and nothing that is found."""

    # What the user left to us

    #: Price of a topic, "auto": this many times the square root of the tokens. Set: spec/topics.md, sections 3 and 6.
    global_price: float = 5.0
    #: Price of a topic in a document, "auto": this times the log of its length, as BIC would charge.
    #: Set: spec/topics.md, section 1.
    local_price: float = 0.5
    #: The same without a mixing cost: this share of the mean length. Set: spec/topics.md, section 3.
    local_price_unmixed: float = 0.25
    #: Pseudo-tokens of every word in every topic, "auto". Set: spec/topics.md, sections 3 and 6.
    smoothing: float = 0.05
    #: Pseudo-tokens of a document, spread evenly over the topics. Set: spec/topics.md, section 6 (1 or 5 are equal).
    concentration: float = 1.0

    # First topics

    #: Topics to start from, "auto": this times the square root of the tokens.
    #: Set: benchmarks topics_quality and topics_speed (commit "Topics: fewer to start from").
    start_rate: float = 0.15
    #: At least so many topics to start from. Set: spec/topics.md, section 3.
    start_least: int = 5
    #: Documents for each topic to start from, at least. Set: spec/topics.md, section 3.
    start_documents: int = 4
    #: Share of the document in its seed topic; the rest is the mean of the corpus. Set: spec/topics.md, section 6.
    seed_share: float = 0.05
    #: Documents drawn for each seed, of which the best is taken. Set: spec/topics.md, section 6.
    seed_draws: int = 6
    #: Tokens of a seed topic, in pseudo-tokens of a topic, at least: smoothing hardly moves it. Set: by hand.
    seed_mass: float = 100.0
    #: Tokens added to every word of the corpus, so that none has probability 0. Set: spec/topics.md, section 3.
    unseen: float = 0.5

    # Soft passes and merges

    #: Inverse temperature of the first soft pass, and of the first that melts; the last is at 1.
    #: Set: spec/topics.md, section 6.
    warm: float = 0.8
    #: Soft passes before topics are merged. Set: spec/topics.md, sections 3 and 6.
    soft_passes: int = 25
    #: Soft passes after a round of merges. Set: spec/topics.md, sections 3 and 6.
    merge_passes: int = 4
    #: Soft passes after all merges. Set: spec/topics.md, sections 3 and 6.
    melt_passes: int = 20
    #: Topics that may be merged with a topic: so many of the nearest. Set: spec/topics.md, section 3.
    merge_nearest: int = 6
    #: Share of the topics that may be merged in one round. Set: spec/topics.md, section 6.
    merge_share: float = 0.15
    #: (speed) Pairs of topics that a thread prices at a time. Set: by hand.
    merge_span: int = 16
    #: Rounding of the free energy, whose counts are in single precision, over that of sums in double precision.
    #: Set: rounding of float32.
    single: float = 2e3
    #: (speed) Columns of soft counts are padded with zeros to a multiple of this. Set: the kernels' vectors.
    lanes: int = 16

    # Closing passes

    #: Closing passes. Set: benchmarks topics_quality (commit "20 closing passes as before").
    close_passes: int = 20
    #: Closing passes of long corpora, where the last ones change little and take long.
    #: Set: benchmarks topics_quality (commit "Topics: fewer closing passes for long corpora").
    close_passes_long: int = 14
    #: Tokens from which on a corpus is long. Set: the same commit.
    long_corpus: int = 1_000_000
    #: How far beyond its result a closing pass goes on: about halves the passes that are needed.
    #: Set: by hand (commit "Topics: closing passes").
    beyond: float = 1.0
    #: Growth of the burstiness from 0 to 1 with the ratio of tokens that come after the first to those expected.
    #: Set: by hand (commit "Topics: closing passes"; texts have ratios of 1.4 to 2.9).
    burst_slope: float = 2.0

    # Hard labels

    #: Gains of a cell below this share of its cost are none. Set: rounding of float64.
    tiny_gain: float = 1e-10

    # Is there anything to find?

    #: Tokens beyond which a part of the documents is looked at first. Set: by hand.
    look_first: int = 150_000
    #: Tokens that are looked at in all. Set: by hand (commit "Mended after review", very long documents).
    look_most: int = 3_000_000
    #: Times the tokens are dealt at random. Set: by hand.
    deals: int = 6
    #: Steps of the power iteration for a singular value. Set: by hand.
    power_steps: int = 12
    #: A corpus must stand out from the deals by so many of their standard deviations. Set: by hand.
    stand_out_sigmas: float = 4.0
    #: A corpus must stand out from the highest deal by this factor. Set: by hand.
    stand_out_factor: float = 1.02
    #: Tokens added to the size of every word and document before residuals are standardised. Set: by hand.
    held_back: float = 10.0

    # Documents in blocks elsewhere

    #: Documents up to which all are gathered and fitted in memory; of more, so many are a sample that topics are
    #: looked for in. Set: as for clusters.
    search_documents: int = 100_000
    #: The same in cells: what fits into a few gigabytes with the counts of a search. Set: by hand.
    search_cells: int = 20_000_000
    #: Passes over all documents with the topics of the sample, at most. Set: by hand.
    passes_everywhere: int = 8
    #: Steps in which the counts of a document come to agree with each other in such a pass. Set: perplexities of new
    #: documents in four made corpora: without any they rise by up to 3 %, with 5, 10 and 20 by up to 1, 0.7 and 0.5 %.
    settling_steps: int = 10

    # Questions to a fitted model

    #: Most steps in which the shares of a new document are found. Set: spec/topics.md, section 4.
    fold_in_steps: int = 60
    #: Change of the shares (sum of absolute values) at which they are found. Set: spec/topics.md, section 4.
    fold_in_tol: float = 1e-4
    #: (speed) Cells times topics that are gone through between two looks at the clock. Set: by hand.
    fold_in_work: float = 5e6
    #: Tokens of a word in a document that are drawn one by one when it is cut in halves; of the others, every second
    #: one is in either half. Set: by hand (the halves of 1000 draws differ by 3 % of them).
    tokens_drawn: int = 1000
    #: Top words of each topic of which the training documents are remembered, for ``coherence``. Set: by hand.
    remembered: int = 50


TOPICS = TopicNumbers()
