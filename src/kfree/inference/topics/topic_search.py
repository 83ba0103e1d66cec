"""The searches for topics, by name: ``(documents, goal, budget, rng)`` in, ``FoundTopics`` out."""

from collections.abc import Callable

import numpy as np

from kfree.inference.loop import Budget
from kfree.inference.topics.annealing import anneal_topics
from kfree.inference.topics.hdp_cells import paper_topics
from kfree.inference.topics.topic_goal import FoundTopics, TopicGoal
from kfree.rows import Documents

TopicSearch = Callable[[Documents, TopicGoal, Budget, np.random.Generator], FoundTopics]

SEARCHES: dict[str, TopicSearch] = {"anneal": anneal_topics, "paper": paper_topics}
