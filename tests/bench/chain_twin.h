// Hand-written C++ for the chain benchmark: y = a x + b, sixteen times over.
#pragma once

#include <cstdint>
#include <span>

namespace eagle::bench {

struct Link {
  double a = 0;
  double b = 0;
};

// planes[i + 1] = links[i].a * planes[i] + links[i].b for all samples; one plane more than there are links,
// of which there are sixteen. Samples are cut into blocks that stay in the first-level cache, and a block
// goes through all links before the next; each thread has the same samples every time.
void chain_blocked(std::span<double* const> planes, std::span<const Link> links, std::int64_t samples,
                   int threads);
// The same with every value in registers on its way through the links, and each plane stored.
void chain_stored(std::span<double* const> planes, std::span<const Link> links, std::int64_t samples,
                  int threads);
// The same with nothing stored but the last plane: the values between exist in registers alone.
void chain_scratch(const double* first, double* last, std::span<const Link> links, std::int64_t samples,
                   int threads);
// Several chains, each on one thread.
void branches(std::span<const std::span<double* const>> chains, std::span<const Link> links,
              std::int64_t samples, int threads);
// y = a x + b through the caches.
void affine(const double* x, double* y, Link link, std::int64_t samples, int threads);
// y = a x + b past the caches where the processor can; y is aligned to 64 bytes.
void affine_streamed(const double* x, double* y, Link link, std::int64_t samples, int threads);

}  // namespace eagle::bench
