"""Sparse elimination, which works on the nonzero entries of a matrix only.

A policy of a model with local moves (levels, queues, wear, grids) couples each state to few others.
Eliminated in a good order, such a system has little fill-in: a chain of 600 states takes ten
thousand multiplications, where a full matrix takes 72 million. The order is found once for all
policies (minimum degree, Tinney and Walker 1967), the sparsity pattern of the factors once for
every policy, their numbers in every draw. No pivoting: ``I - discount P`` is strictly diagonally
dominant by rows.

A system's matrix maps ``x`` to ``x - chance x``: row ``i`` has the entries ``start[i]:start[i+1]``.
"""

from surefoot._compile import kernel


@kernel(lean=True)
def minimum_degree(links, limit, order, degree, near):
    """Write an order of elimination with little fill-in.

    ``links[s, t]`` says that s and t occur in one equation (symmetric, without a diagonal); it is
    overwritten. Returns upper bounds on the multiplications of an elimination and on the entries of
    each of its two factors; (-1, -1) as soon as the multiplications exceed the limit. O(S^2) plus
    the multiplications.
    """
    size = len(order)
    for s in range(size):
        degree[s] = 0
        for t in range(size):
            degree[s] += links[s, t]
    work, fill = 0, 0
    for position in range(size):
        best = -1
        for s in range(size):
            if degree[s] >= 0 and (best < 0 or degree[s] < degree[best]):
                best = s
        order[position] = best
        count = 0
        for t in range(size):
            if links[best, t] and degree[t] >= 0:
                near[count] = t
                count += 1
        work += count * (count + 1)
        fill += count
        if work > limit:
            return -1, -1
        degree[best] = -1
        for i in range(count):
            s = near[i]
            degree[s] -= 1
            for j in range(count):
                if i != j and not links[s, near[j]]:
                    links[s, near[j]] = True
                    degree[s] += 1
    return work, fill


@kernel(lean=True)
def insert(link, before, item):
    """Insert an item into a sorted linked list, somewhere after ``before``; return the item."""
    while link[before] < item:
        before = link[before]
    if link[before] != item:
        link[item] = link[before]
        link[before] = item
    return item


@kernel(lean=True)
def analyse(start, column, lower_start, lower_column, upper_start, upper_column, link):
    """Write the sparsity patterns of the factors: the sorted columns of each row of L and of U.

    ``link`` is ``(S + 1,)``: the sorted columns of the current row as a linked list that begins and
    ends at the last element. O(fill) if rows are short.
    """
    size = len(start) - 1
    below, above = 0, 0
    for i in range(size):
        link[size] = size
        insert(link, size, i)
        for e in range(start[i], start[i + 1]):
            insert(link, size, column[e])
        k = link[size]
        while k < i:
            at = k
            for p in range(upper_start[k], upper_start[k + 1]):
                at = insert(link, at, upper_column[p])
            k = link[k]
        lower_start[i] = below
        k = link[size]
        while k < i:
            lower_column[below] = k
            below += 1
            k = link[k]
        upper_start[i] = above
        k = link[i]
        while k < size:
            upper_column[above] = k
            above += 1
            k = link[k]
        lower_start[i + 1], upper_start[i + 1] = below, above


@kernel(lean=True)
def factorise(
    start, column, chance, lower_start, lower_column, lower, upper_start, upper_column, upper,
    pivot, row,
):  # fmt: skip
    """Write the numbers of L (unit diagonal) and U, and the reciprocals of U's diagonal."""
    for i in range(len(pivot)):
        for p in range(lower_start[i], lower_start[i + 1]):
            row[lower_column[p]] = 0
        for p in range(upper_start[i], upper_start[i + 1]):
            row[upper_column[p]] = 0
        row[i] = 1
        for e in range(start[i], start[i + 1]):
            row[column[e]] -= chance[e]
        for p in range(lower_start[i], lower_start[i + 1]):
            k = lower_column[p]
            factor = row[k] * pivot[k]
            lower[p] = factor
            for q in range(upper_start[k], upper_start[k + 1]):
                row[upper_column[q]] -= factor * upper[q]
        pivot[i] = 1 / row[i]
        for p in range(upper_start[i], upper_start[i + 1]):
            upper[p] = row[upper_column[p]]


@kernel(lean=True)
def back_substitute(
    lower_start, lower_column, lower, upper_start, upper_column, upper, pivot, transposed, x
):
    """Solve ``L U x = b``, or the transposed system, in place."""
    size = len(pivot)
    if transposed:
        for i in range(size):
            x[i] *= pivot[i]
            for p in range(upper_start[i], upper_start[i + 1]):
                x[upper_column[p]] -= upper[p] * x[i]
        for i in range(size - 1, -1, -1):
            for p in range(lower_start[i], lower_start[i + 1]):
                x[lower_column[p]] -= lower[p] * x[i]
        return
    for i in range(size):
        for p in range(lower_start[i], lower_start[i + 1]):
            x[i] -= lower[p] * x[lower_column[p]]
    for i in range(size - 1, -1, -1):
        for p in range(upper_start[i], upper_start[i + 1]):
            x[i] -= upper[p] * x[upper_column[p]]
        x[i] *= pivot[i]
