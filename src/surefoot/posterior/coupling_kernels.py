"""What drawn rows are worth, and rows dealt out anew: what coupling needs (`coupled.py`)."""

from surefoot._compile import kernel


@kernel(lean=True)
def score_rows(draws, values, row_start, out):
    """Write ``out[i, r]``: what row ``r`` of draw ``i`` is worth, ``p.values``. O(n entries)."""
    for i in range(len(draws)):
        for r in range(len(row_start) - 1):
            total = 0.0
            for e in range(row_start[r], row_start[r + 1]):
                total += draws[i, e] * values[e]
            out[i, r] = total


@kernel(lean=True)
def deal_rows(draws, places, row_start, out):
    """Write row ``r`` of draw ``j`` into model ``places[j, r]``. O(n entries)."""
    for j in range(len(draws)):
        for r in range(len(row_start) - 1):
            given = places[j, r]
            for e in range(row_start[r], row_start[r + 1]):
                out[given, e] = draws[j, e]
