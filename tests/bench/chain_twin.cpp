#include "tests/bench/chain_twin.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "tests/bench/vectors.h"

namespace eagle::bench {
namespace {

constexpr std::size_t length = 16;
constexpr std::int64_t block = 128;  // samples; seventeen planes of them take 17 KiB
constexpr std::int64_t grain = 64;

// Below so many samples a second thread costs more than it brings.
constexpr std::int64_t inline_samples = 4096;

using Links = std::array<Link, length>;

Links links_of(std::span<const Link> links) {
  Links copy;
  std::copy_n(links.begin(), length, copy.begin());
  return copy;
}

// Calls work(begin, end) for the samples of each thread, the same ones every time.
template <typename Work>
void share(std::int64_t samples, int threads, const Work& work) {
  if (threads == 1 || samples <= inline_samples) {
    work(std::int64_t{0}, samples);
    return;
  }
  const std::int64_t grains = (samples + grain - 1) / grain;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; ++t)
    work(grains * t / threads * grain, std::min(grains * (t + 1) / threads * grain, samples));
}

void one(const double* __restrict x, double* __restrict y, Link link, std::int64_t samples) {
  for (std::int64_t i = 0; i < samples; ++i) y[i] = link.a * x[i] + link.b;
}

void blocked(std::span<double* const> planes, std::span<const Link> links, std::int64_t begin,
             std::int64_t end) {
  for (std::int64_t first = begin; first < end; first += block) {
    const std::int64_t count = std::min(block, end - first);
    for (std::size_t k = 0; k < length; ++k) one(planes[k] + first, planes[k + 1] + first, links[k], count);
  }
}

void stored(std::span<double* const> planes, const Links& links, std::int64_t begin, std::int64_t end) {
  constexpr int copies = 16 / vector_width;
  std::int64_t i = begin;
  for (; i + copies * vector_width <= end; i += copies * vector_width) {
    Vector value[copies];
    for (int j = 0; j < copies; ++j) value[j] = load(planes[0] + i + vector_width * j);
    for (std::size_t k = 0; k < length; ++k) {
      const Vector a = all(links[k].a), b = all(links[k].b);
      for (int j = 0; j < copies; ++j) {
        value[j] = a * value[j] + b;
        store(planes[k + 1] + i + vector_width * j, value[j]);
      }
    }
  }
  for (; i < end; ++i) {
    double value = planes[0][i];
    for (std::size_t k = 0; k < length; ++k) planes[k + 1][i] = value = links[k].a * value + links[k].b;
  }
}

void scratch(const double* first, double* last, const Links& links, std::int64_t begin, std::int64_t end) {
  constexpr int copies = 32 / vector_width;
  std::int64_t i = begin;
  for (; i + copies * vector_width <= end; i += copies * vector_width) {
    Vector value[copies];
    for (int j = 0; j < copies; ++j) value[j] = load(first + i + vector_width * j);
    for (std::size_t k = 0; k < length; ++k) {
      const Vector a = all(links[k].a), b = all(links[k].b);
      for (int j = 0; j < copies; ++j) value[j] = a * value[j] + b;
    }
    for (int j = 0; j < copies; ++j) store(last + i + vector_width * j, value[j]);
  }
  for (; i < end; ++i) {
    double value = first[i];
    for (std::size_t k = 0; k < length; ++k) value = links[k].a * value + links[k].b;
    last[i] = value;
  }
}

void streamed(const double* x, double* y, Link link, std::int64_t begin, std::int64_t end) {
  const Vector a = all(link.a), b = all(link.b);
  std::int64_t i = begin;
  for (; i + 32 <= end; i += 32) {
    for (int j = 0; j < 32; j += vector_width) stream(y + i + j, a * load(x + i + j) + b);
  }
  fence();
  one(x + i, y + i, link, end - i);
}

}  // namespace

void chain_blocked(std::span<double* const> planes, std::span<const Link> links, std::int64_t samples,
                   int threads) {
  share(samples, threads, [&](std::int64_t begin, std::int64_t end) { blocked(planes, links, begin, end); });
}

void chain_stored(std::span<double* const> planes, std::span<const Link> links, std::int64_t samples,
                  int threads) {
  const Links copy = links_of(links);
  share(samples, threads, [&](std::int64_t begin, std::int64_t end) { stored(planes, copy, begin, end); });
}

void chain_scratch(const double* first, double* last, std::span<const Link> links, std::int64_t samples,
                   int threads) {
  const Links copy = links_of(links);
  share(samples, threads,
        [&](std::int64_t begin, std::int64_t end) { scratch(first, last, copy, begin, end); });
}

void branches(std::span<const std::span<double* const>> chains, std::span<const Link> links,
              std::int64_t samples, int threads) {
  const Links copy = links_of(links);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (std::size_t c = 0; c < chains.size(); ++c) stored(chains[c], copy, 0, samples);
}

void affine(const double* x, double* y, Link link, std::int64_t samples, int threads) {
  share(samples, threads,
        [&](std::int64_t begin, std::int64_t end) { one(x + begin, y + begin, link, end - begin); });
}

void affine_streamed(const double* x, double* y, Link link, std::int64_t samples, int threads) {
  share(samples, threads, [&](std::int64_t begin, std::int64_t end) { streamed(x, y, link, begin, end); });
}

}  // namespace eagle::bench
