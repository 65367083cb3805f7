// Sums in the fixed orders, of x[i] = (u/2^32 - 0.5) * 2^(((7 i) mod 41) - 20) with u = ((i+1) * 2654435761)
// mod 2^32.
//
// Source: the bits of raptor-eagle 0.6.2 (plain order) and 0.7.1 (compensated), as the reference that the
// graph model is written after gives them. For tests.
#pragma once

#include <cstdint>
#include <vector>

namespace eagle::run {

struct GoldenSum {
  std::int64_t n;
  double f64;
  double f64_compensated;
  float f32;
  float f32_compensated;
};

inline constexpr GoldenSum golden_sums[] = {
    {1, 0x1.e3779b1000000p-24, 0x1.e3779b1000000p-24, 0x1.e3779c0000000p-24f, 0x1.e3779c0000000p-24f},
    {2, -0x1.0d5276aa78000p-15, -0x1.0d5276aa78000p-15, -0x1.0d52760000000p-15f, -0x1.0d52760000000p-15f},
    {3, 0x1.687f0f5eab100p-8, 0x1.687f0f5eab100p-8, 0x1.687f100000000p-8f, 0x1.687f100000000p-8f},
    {7, 0x1.a3d7597bc07e9p+12, 0x1.a3d7597bc07e9p+12, 0x1.a3d75a0000000p+12f, 0x1.a3d75a0000000p+12f},
    {8, 0x1.a3d759ed7c4c2p+12, 0x1.a3d759ed7c4c2p+12, 0x1.a3d75a0000000p+12f, 0x1.a3d75a0000000p+12f},
    {9, 0x1.a3d761e71fe8ap+12, 0x1.a3d761e71fe8ap+12, 0x1.a3d7620000000p+12f, 0x1.a3d7620000000p+12f},
    {31, 0x1.e51a4d4fe771ep+15, 0x1.e51a4d4fe771ep+15, 0x1.e51a4c0000000p+15f, 0x1.e51a4c0000000p+15f},
    {32, 0x1.e51a4dddc5de2p+15, 0x1.e51a4dddc5de2p+15, 0x1.e51a4c0000000p+15f, 0x1.e51a4e0000000p+15f},
    {33, 0x1.e51a330475af2p+15, 0x1.e51a330475af2p+15, 0x1.e51a300000000p+15f, 0x1.e51a320000000p+15f},
    {255, 0x1.6d9b97f4d684ap+19, 0x1.6d9b97f4d684ap+19, 0x1.6d9b980000000p+19f, 0x1.6d9b980000000p+19f},
    {256, 0x1.6d9b73b1af04ap+19, 0x1.6d9b73b1af04ap+19, 0x1.6d9b740000000p+19f, 0x1.6d9b740000000p+19f},
    {257, 0x1.6db0dffc5b44ap+19, 0x1.6db0dffc5b44ap+19, 0x1.6db0e00000000p+19f, 0x1.6db0e00000000p+19f},
    {1000, 0x1.caffc41ee1c39p+19, 0x1.caffc41ee1c37p+19, 0x1.caffc00000000p+19f, 0x1.caffc40000000p+19f},
    {1023, 0x1.f3792d6b1811ep+19, 0x1.f3792d6b1811bp+19, 0x1.f3792e0000000p+19f, 0x1.f3792e0000000p+19f},
    {1024, 0x1.f37f0bd75811ep+19, 0x1.f37f0bd75811bp+19, 0x1.f37f0c0000000p+19f, 0x1.f37f0c0000000p+19f},
    {1025, 0x1.f35ffdc4e011ep+19, 0x1.f35ffdc4e011bp+19, 0x1.f35ffe0000000p+19f, 0x1.f35ffe0000000p+19f},
    {4095, -0x1.9daff9330338cp+19, -0x1.9daff9330338ep+19, -0x1.9daff40000000p+19f, -0x1.9daffa0000000p+19f},
    {4096, -0x1.9daff933076b4p+19, -0x1.9daff933076b6p+19, -0x1.9daff40000000p+19f, -0x1.9daffa0000000p+19f},
    {4097, -0x1.9daff94d92c8dp+19, -0x1.9daff94d92c8fp+19, -0x1.9daff40000000p+19f, -0x1.9daffa0000000p+19f},
    {8191, -0x1.a1cb0dba395e8p+19, -0x1.a1cb0dba395ecp+19, -0x1.a1cb0c0000000p+19f, -0x1.a1cb0e0000000p+19f},
    {65537, -0x1.823df6b130279p+22, -0x1.823df6b130277p+22, -0x1.823df80000000p+22f, -0x1.823df80000000p+22f},
    {1000003, 0x1.4e10750f0057bp+21, 0x1.4e10750f00575p+21, 0x1.4e107c0000000p+21f, 0x1.4e10740000000p+21f},
};

// The samples that the golden sums are of, in doubles; a float is this rounded.
inline std::vector<double> golden_samples(std::int64_t n) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto u = static_cast<std::uint32_t>(static_cast<std::uint64_t>(i + 1) * 2654435761u);
    const int power = static_cast<int>((7 * i) % 41) - 20;
    const double scale =
        power < 0 ? 1.0 / static_cast<double>(1u << -power) : static_cast<double>(1u << power);
    x.push_back((static_cast<double>(u) / 4294967296.0 - 0.5) * scale);
  }
  return x;
}

}  // namespace eagle::run
