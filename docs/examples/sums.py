"""Sums a matrix along its rows, and another across its columns: two loops of one function."""
import mmap
import numpy as np
N = 512
def matrix():
    pages = mmap.mmap(-1, N * N * 8)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype=np.float64).reshape(N, N)
along, across = matrix(), matrix()
total = along.sum()
for column in range(N):
    total += across[:, column].sum()
print('matrices', along.ctypes.data, across.ctypes.data, flush=True)
