// Hand-written twins of sums and scatter-adds: what the machine can do in the same order.
#pragma once

#include <cstdint>

namespace eagle::bench {

// The sum in the fixed order (leaves of 256, halved; leaves as adjacent pairs), by `threads` threads.
double fixed_order_sum(const double* x, std::int64_t n, int threads);

// h[key[i]] += x[i] in the order of i, on one thread.
void serial_scatter(const double* x, const std::int64_t* key, std::int64_t n, double* h);

// The same bits by two or more threads: tiles, whose additions the owner of each element makes.
void tiled_scatter(const double* x, const std::int64_t* key, std::int64_t n, double* h, std::int64_t cells,
                   int threads);

}  // namespace eagle::bench
