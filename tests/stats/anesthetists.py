"""Table 1 of Dawid and Skene (1979): five anaesthetists judge 45 patients on a scale of 1 to 4, the first three times.

Each row is a patient: the three judgments of observer 1, then those of observers 2 to 5.
"""

import numpy as np

from stats.label_votes import LabelVotes

_ROWS = """
1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212 1211111
1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111 1111111 1121121
1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222
"""


def load_votes() -> LabelVotes:
    table = np.array([[int(digit) for digit in row] for row in _ROWS.split()])
    workers = np.array([0, 0, 0, 1, 2, 3, 4])
    return LabelVotes(
        tasks=np.repeat(np.arange(len(table)), 7),
        workers=np.tile(workers, len(table)),
        labels=table.ravel() - 1,
        k=4,
    )
