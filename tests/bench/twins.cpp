// The hand-written twins as a C library: tests/bench/twins.py calls it on the arrays that our forms get.
//
// Compiled like the twins themselves: -O3 -march=native, contraction off. Every function repeats its work
// `count` times where one call would take about as long as calling it from Python does. `threads` is a team
// of OpenMP, as ours is. What a twin is, and why it is a fair limit, stands in the header of each.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tests/bench/accumulate_twin.h"
#include "tests/bench/chain_twin.h"
#include "tests/bench/gradient_twin.h"
#include "tests/bench/math_twin.h"
#include "tests/bench/stepping_twin.h"
#include "tests/bench/vectors.h"

using namespace eagle::bench;

namespace {

constexpr std::size_t chain_links = 16;

std::span<double* const> planes_of(double* const* planes) { return {planes, chain_links + 1}; }
std::span<const Link> links_of(const Link* links) { return {links, chain_links}; }

template <typename Work>
void times(std::int64_t count, const Work& work) {
  for (std::int64_t i = 0; i < count; ++i) work();
}

}  // namespace

extern "C" {

int twin_vector_width() { return vector_width; }
int twin_vectors_at_once() { return vectors_at_once; }

// Lines 1 to 4 and 11.
void twin_chain_blocked(double* const* planes, const Link* links, std::int64_t n, int threads,
                        std::int64_t count) {
  times(count, [&] { chain_blocked(planes_of(planes), links_of(links), n, threads); });
}
void twin_chain_stored(double* const* planes, const Link* links, std::int64_t n, int threads,
                       std::int64_t count) {
  times(count, [&] { chain_stored(planes_of(planes), links_of(links), n, threads); });
}
void twin_chain_scratch(double* const* planes, const Link* links, std::int64_t n, int threads,
                        std::int64_t count) {
  times(count, [&] { chain_scratch(planes[0], planes[chain_links], links_of(links), n, threads); });
}
// `chains` times seventeen planes, one chain behind the other.
void twin_branches(double* const* planes, const Link* links, std::int64_t chains, std::int64_t n, int threads,
                   std::int64_t count) {
  std::vector<std::span<double* const>> all;
  for (std::int64_t c = 0; c < chains; ++c)
    all.push_back(planes_of(planes + c * static_cast<std::int64_t>(chain_links + 1)));
  times(count, [&] { branches(all, links_of(links), n, threads); });
}
void twin_affine(const double* x, double* y, double a, double b, std::int64_t n, int threads,
                 std::int64_t count) {
  times(count, [&] { affine(x, y, {a, b}, n, threads); });
}
void twin_affine_streamed(const double* x, double* y, double a, double b, std::int64_t n, int threads) {
  affine_streamed(x, y, {a, b}, n, threads);
}

// Lines 6 to 9.
void twin_step_damped(double* x, double* v, double* t, const double* omega, const double* t_end, bool* done,
                      std::int64_t n, int method, double dt, double damping, int threads, int copies) {
  step_damped({x, v, t, omega, t_end, done, n}, method == 0 ? Method::euler : Method::rk4, dt, damping,
              threads, copies);
}
void twin_step_two_body(double* r, double* v, double* t, const double* t_end, bool* done, std::int64_t n,
                        double h, int threads, int copies) {
  step_two_body({r, v, t, t_end, done, n}, h, threads, copies);
}

// Line 10. False: this build has no such library.
bool twin_mixed_libmvec(const double* x, double* y, std::int64_t n, int threads) {
  constexpr std::int64_t piece = 4096;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < n; i += piece) mixed_libmvec(x + i, y + i, std::min(piece, n - i));
  return !array_functions().empty();
}
bool twin_mixed_sleef(const double* x, double* y, std::int64_t n, int threads) {
  constexpr std::int64_t piece = 4096;
  bool there = true;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(&& : there)
  for (std::int64_t i = 0; i < n; i += piece) there = mixed_sleef(x + i, y + i, std::min(piece, n - i));
  return there;
}

// Lines 12 and 13.
double twin_sum(const double* x, std::int64_t n, int threads, std::int64_t count) {
  double sum = 0;
  times(count, [&] { sum = fixed_order_sum(x, n, threads); });
  return sum;
}
void twin_scatter_serial(const double* x, const std::int64_t* key, std::int64_t n, double* h) {
  serial_scatter(x, key, n, h);
}
void twin_scatter_tiled(const double* x, const std::int64_t* key, std::int64_t n, double* h,
                        std::int64_t cells, int threads) {
  tiled_scatter(x, key, n, h, cells, threads);
}

// Line 17.
void twin_two_body_adjoint(const double* r, const double* v, const double* bar_r1, const double* bar_v1,
                           double* bar_r, double* bar_v, std::int64_t n, double h, int threads,
                           std::int64_t count) {
  times(count, [&] { two_body_adjoint({r, v, bar_r1, bar_v1, bar_r, bar_v, n}, h, threads); });
}

// Line 18: memory that the process has had before, written once.
void twin_fill(double* x, std::int64_t n, double value) { std::fill_n(x, n, value); }

}  // extern "C"
