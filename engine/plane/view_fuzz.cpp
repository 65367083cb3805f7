// Two views of one plane with any numbers: refused, or inside of it, and their overlap is what a list of the
// bytes says.
#include <algorithm>
#include <iterator>
#include <set>

#include "engine/plane/overlap.h"
#include "engine/plane/testing.h"
#include "engine/plane/view.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {
namespace {

using plane::View;

View read_view(Bytes& bytes) {
  View view;
  const std::uint8_t kind = bytes.byte();
  constexpr plane::DType dtypes[] = {plane::DType::f64, plane::DType::f32,     plane::DType::i64,
                                     plane::DType::i32, plane::DType::boolean, plane::DType::other};
  view.dtype = dtypes[kind % 6];
  view.item_bytes = view.dtype == plane::DType::other || kind >= 0xf0
                        ? static_cast<std::uint32_t>(bytes.number())
                        : plane::bytes_of(view.dtype);
  view.offset = bytes.number();
  const int dimensions = bytes.byte() % 36;
  for (int i = 0; i < dimensions; ++i) {
    view.shape.push_back(bytes.number());
    view.strides.push_back(bytes.number());
  }
  if (kind % 64 == 63) view.strides.push_back(8);
  return view;
}

// Whether all bytes of a view can be listed. One without elements may have huge extents beside the 0.
bool is_small(const View& view) {
  const std::int64_t count = plane::elements(view);
  return count > 0 && count <= 512 && view.item_bytes <= 64;
}

void check_alone(const View& view, std::uint64_t plane_bytes) {
  const plane::Extent extent = plane::extent(view);
  if (extent.first < 0 || extent.first > extent.last ||
      static_cast<std::uint64_t>(extent.last) > plane_bytes) {
    broken("accepted outside of its plane: " + to_string(view));
  }
  const plane::Band band = plane::band_of(view);
  if (band.first > band.last) broken("a band that ends before it begins: " + to_string(view));
}

void check_pair(const View& a, const View& b) {
  const std::string text = to_string(a) + " | " + to_string(b);
  const plane::Overlap found = plane::overlap(a, b, 10'000);
  const plane::Overlap turned = plane::overlap(b, a, 10'000);
  if (found.exact && turned.exact && found.overlaps != turned.overlaps)
    broken("depends on the order: " + text);
  if (!found.exact && !found.overlaps) broken("not exact, and no: " + text);
  if (!is_small(a) || !is_small(b)) return;
  const std::set<std::int64_t> left = plane::testing::bytes_touched(a);
  const std::set<std::int64_t> right = plane::testing::bytes_touched(b);
  std::set<std::int64_t> both;
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                        std::inserter(both, both.end()));
  if (found.exact ? found.overlaps == both.empty() : !both.empty() && !found.overlaps)
    broken("wrong: " + text);
  if (found.exact && found.overlaps && !both.contains(found.first)) broken("names no shared byte: " + text);
}

}  // namespace

std::vector<std::string> seeds() {
  using plane::testing::array;
  // Kind, offset, dimensions, then extents and strides: numbers from -64 in one byte.
  const auto number = [](int value) { return static_cast<char>(value + 0x40); };
  const auto view = [&](int kind, int offset, std::vector<std::pair<int, int>> axes) {
    std::string text{static_cast<char>(kind), number(offset), static_cast<char>(axes.size())};
    for (const auto& [extent, stride] : axes) text += {number(extent), number(stride)};
    return text;
  };
  const std::string big(1, static_cast<char>(0xaf));  // a plane of 111 bytes
  return {
      big + view(0, 0, {{4, 16}}) + view(0, 8, {{4, 16}}),
      big + view(0, 0, {{6, 16}}) + view(0, 88, {{4, -16}}),
      big + view(4, 3, {{5, 7}, {3, 2}}) + view(1, 4, {{3, 12}, {2, 4}}),
      big + view(4, 0, {{0, 1}}) + view(5, 0, {}),
      std::string("\xf0\x7f\xff\xff\xff\xff\xff\xff\xff", 9) + view(0, 0, {{2, 8}}) +
          view(4, 1, {{9, 3}, {9, 0}}),
  };
}

}  // namespace eagle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eagle;
  fuzz::Bytes bytes(data, size);
  const auto plane_bytes = static_cast<std::uint64_t>(bytes.number());
  const plane::View a = fuzz::read_view(bytes);
  const plane::View b = fuzz::read_view(bytes);
  const bool first = plane::check(a, plane_bytes).ok();
  const bool second = plane::check(b, plane_bytes).ok();
  if (first) fuzz::check_alone(a, plane_bytes);
  if (second) fuzz::check_alone(b, plane_bytes);
  if (first && second) fuzz::check_pair(a, b);
  return 0;
}
