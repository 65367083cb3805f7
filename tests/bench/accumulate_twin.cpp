#include "tests/bench/accumulate_twin.h"

#include <omp.h>

#include <algorithm>
#include <vector>

#include "tests/bench/vectors.h"

namespace eagle::bench {
namespace {

constexpr std::int64_t leaf_samples = 256;

// The vector at `at` after the halving pass of `stride` vectors. Depth first, so that few values wait in
// registers at a time; the additions and their operands are those of the passes.
template <int at, int stride>
inline __attribute__((always_inline)) Vector halved(const double* x) {
  if constexpr (stride * vector_width == leaf_samples) {
    return load(x + at * vector_width);
  } else {
    return halved<at, 2 * stride>(x) + halved<at + stride, 2 * stride>(x);
  }
}

double leaf(const double* x) {
  double b[vector_width];
  store(b, halved<0, 1>(x));
  for (int s = vector_width / 2; s >= 1; s /= 2) {
    for (int i = 0; i < s; ++i) b[i] += b[i + s];
  }
  return b[0];
}

// Leaves [first, last) as a stack of whole subtrees; pairs are made as soon as there are two of a level.
struct Stack {
  double value[64];
  std::int64_t index[64];
  int level[64];
  int size = 0;

  void push(double v, std::int64_t i, int l) {
    while (size > 0 && i % 2 == 1 && level[size - 1] == l) {
      v = value[--size] + v;
      i /= 2;
      ++l;
    }
    value[size] = v;
    index[size] = i;
    level[size++] = l;
  }
};

void sum_leaves(const double* x, std::int64_t n, std::int64_t first, std::int64_t last, Stack& stack) {
  double padded[leaf_samples];
  for (std::int64_t i = first; i < last; ++i) {
    const double* from = x + i * leaf_samples;
    const std::int64_t count = std::min(n - i * leaf_samples, leaf_samples);
    if (count < leaf_samples) {
      std::copy(from, from + count, padded);
      std::fill(padded + count, padded + leaf_samples, -0.0);
      from = padded;
    }
    stack.push(leaf(from), i, 0);
  }
}

}  // namespace

double fixed_order_sum(const double* x, std::int64_t n, int threads) {
  const std::int64_t leaves = (n + leaf_samples - 1) / leaf_samples;
  std::vector<Stack> stacks(static_cast<std::size_t>(threads));
  if (threads == 1) {
    sum_leaves(x, n, 0, leaves, stacks[0]);
  } else {
#pragma omp parallel num_threads(threads)
    {
      const std::int64_t t = omp_get_thread_num();
      sum_leaves(x, n, leaves * t / threads, leaves * (t + 1) / threads, stacks[static_cast<std::size_t>(t)]);
    }
  }
  Stack& all = stacks[0];
  for (std::size_t t = 1; t < stacks.size(); ++t) {
    for (int i = 0; i < stacks[t].size; ++i)
      all.push(stacks[t].value[i], stacks[t].index[i], stacks[t].level[i]);
  }
  double sum = all.value[all.size - 1];
  for (int i = all.size - 1; i-- > 0;) sum = all.value[i] + sum;
  return sum;
}

void serial_scatter(const double* x, const std::int64_t* key, std::int64_t n, double* h) {
  for (std::int64_t i = 0; i < n; ++i) h[key[i]] += x[i];
}

void tiled_scatter(const double* x, const std::int64_t* key, std::int64_t n, double* h, std::int64_t cells,
                   int threads) {
  constexpr std::int64_t tile = 16'384;
  struct Note {
    std::int64_t key;
    double x;
  };
  // By (producer, owner).
  std::vector<std::vector<Note>> notes(static_cast<std::size_t>(threads * threads), std::vector<Note>(tile));
  std::vector<std::int64_t> counts(notes.size());
  const std::int64_t each = (cells + threads - 1) / threads;
#pragma omp parallel num_threads(threads)
  {
    const int me = omp_get_thread_num();
    for (std::int64_t round = 0; round < n; round += tile * threads) {
      for (int owner = 0; owner < threads; ++owner)
        counts[static_cast<std::size_t>(me * threads + owner)] = 0;
      const std::int64_t begin = round + me * tile;
      for (std::int64_t i = begin; i < std::min(begin + tile, n); ++i) {
        const auto place = static_cast<std::size_t>(me * threads + key[i] / each);
        notes[place][static_cast<std::size_t>(counts[place]++)] = {key[i], x[i]};
      }
#pragma omp barrier
      for (int producer = 0; producer < threads; ++producer) {
        const auto place = static_cast<std::size_t>(producer * threads + me);
        for (std::int64_t i = 0; i < counts[place]; ++i) {
          const Note& note = notes[place][static_cast<std::size_t>(i)];
          h[note.key] += note.x;
        }
      }
#pragma omp barrier
    }
  }
}

}  // namespace eagle::bench
