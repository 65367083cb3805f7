#include "engine/plane/shared_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace eagle::plane {
namespace {

// Bounds of a view lie in its plane, so sums of its strides fit 64 bits; differences of two bounds do too.
struct Repeat {
  std::int64_t stride = 0;
  std::int64_t count = 0;
  std::int64_t reach = 0;  // bytes from the first byte of this and the inner dimensions to one past the last
};

// Bytes in runs of `width`, at start plus multiples of the strides; strides ascend. `inner` is a set with
// its outermost dimensions dropped.
struct Pieces {
  std::int64_t start = 0;
  std::int64_t width = 0;
  std::span<const Repeat> dimensions;

  [[nodiscard]] std::int64_t reach() const { return dimensions.empty() ? width : dimensions.back().reach; }
  [[nodiscard]] std::int64_t end() const { return start + reach(); }
  [[nodiscard]] Pieces inner(std::int64_t step) const {
    return {start + step * dimensions.back().stride, width, dimensions.first(dimensions.size() - 1)};
  }
};

struct Canonical {
  std::int64_t start = 0;
  std::int64_t width = 0;
  std::vector<Repeat> dimensions;
  bool nested = true;  // no two pieces touch the same byte, at any depth

  [[nodiscard]] Pieces pieces() const { return {start, width, dimensions}; }
};

Canonical canonical(const View& view) {
  Canonical out{view.offset, view.item_bytes, {}, true};
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 1 || view.strides[i] == 0) continue;
    if (view.strides[i] < 0) out.start += (view.shape[i] - 1) * view.strides[i];
    out.dimensions.push_back({std::abs(view.strides[i]), view.shape[i], 0});
  }
  std::ranges::sort(out.dimensions, {}, &Repeat::stride);
  std::vector<Repeat> kept;
  for (const Repeat& next : out.dimensions) {
    if (kept.empty() && next.stride <= out.width) {  // runs that touch are one run
      out.width += (next.count - 1) * next.stride;
      continue;
    }
    // i*s + j*k*s with k <= the number of i's takes every multiple of s up to the sum: one dimension.
    Repeat* const last = kept.empty() ? nullptr : &kept.back();
    if (last != nullptr && next.stride % last->stride == 0 && next.stride / last->stride <= last->count) {
      last->count += (next.count - 1) * (next.stride / last->stride);
    } else {
      kept.push_back(next);
    }
  }
  std::int64_t reach = out.width;
  for (Repeat& dimension : kept) {
    out.nested = out.nested && dimension.stride >= reach;
    reach += (dimension.count - 1) * dimension.stride;
    dimension.reach = reach;
  }
  out.dimensions = std::move(kept);
  return out;
}

// Counts what two nested sets have in common.
class Counter {
public:
  explicit Counter(std::int64_t work_cap) : cap_(work_cap) {}

  // `times` copies of everything found, the first of them where it is found.
  void count(const Pieces& a, const Pieces& b, std::int64_t times) {
    if (!step() || a.end() <= b.start || b.end() <= a.start) return;
    if (a.dimensions.empty()) return clip(b, a.start, a.end(), times);
    if (b.dimensions.empty()) return clip(a, b.start, b.end(), times);
    if (a.dimensions.back().stride == b.dimensions.back().stride) return count_rows(a, b, times);
    const bool a_outside = a.dimensions.back().stride > b.dimensions.back().stride;
    a_outside ? count_steps(a, b, times) : count_steps(b, a, times);
  }

  [[nodiscard]] SharedBytes result() const {
    return {out_.count == 0 ? 0 : out_.first, out_.count, out_.exact,
            cap_ - std::max<std::int64_t>(left(), 0)};
  }

private:
  [[nodiscard]] std::int64_t left() const { return cap_ - steps_; }
  bool step() {
    if (left() <= 0) {
      out_.exact = false;
      return false;
    }
    ++steps_;
    return true;
  }

  void add(std::int64_t first, std::int64_t bytes) {
    out_.first = std::min(out_.first, first);
    out_.count += bytes;
  }

  static std::int64_t bytes_in(const Pieces& pieces) {
    std::int64_t bytes = pieces.width;
    for (const Repeat& dimension : pieces.dimensions) bytes *= dimension.count;
    return bytes;
  }

  // The bytes of `pieces` in [low, high). Only the pieces at the two ends are cut.
  void clip(const Pieces& pieces, std::int64_t low, std::int64_t high, std::int64_t times) {
    if (!step() || pieces.end() <= low || high <= pieces.start) return;
    if (low <= pieces.start && pieces.end() <= high) return add(pieces.start, times * bytes_in(pieces));
    if (pieces.dimensions.empty()) {
      const std::int64_t first = std::max(low, pieces.start);
      return add(first, times * (std::min(high, pieces.end()) - first));
    }
    const Repeat& rows = pieces.dimensions.back();
    const std::int64_t row = pieces.inner(0).reach();
    const auto index = [&](std::int64_t bytes) {  // rows that begin before so many bytes
      return bytes <= 0 ? 0 : std::min(rows.count, (bytes - 1) / rows.stride + 1);
    };
    // Rows [first, last) meet the range; all but the first and the last lie in it whole.
    const std::int64_t first = index(low - pieces.start - row + 1);
    const std::int64_t last = index(high - pieces.start);
    if (first >= last) return;
    clip(pieces.inner(first), low, high, times);
    if (last - first > 2) {
      const Pieces whole = pieces.inner(first + 1);
      add(whole.start, times * (last - first - 2) * bytes_in(whole));
    }
    if (last - first > 1) clip(pieces.inner(last - 1), low, high, times);
  }

  // Rows of one stride: row i of a meets only those rows of b that lie beside it, equally for all i.
  void count_rows(const Pieces& a, const Pieces& b, std::int64_t times) {
    const std::int64_t stride = a.dimensions.back().stride;
    const std::int64_t rows_a = a.dimensions.back().count;
    const std::int64_t rows_b = b.dimensions.back().count;
    const std::int64_t apart = (a.start - b.start) / stride;
    for (std::int64_t shift = apart - 2; shift <= apart + 2; ++shift) {
      // Row i of a with row i + shift of b.
      const std::int64_t first = std::max<std::int64_t>(0, -shift);
      const std::int64_t rows = std::min(rows_a, rows_b - shift) - first;
      if (rows > 0) count(a.inner(first), b.inner(first + shift), times * rows);
    }
  }

  // Each row of `outer`, which is the wider of the two, on its own.
  void count_steps(const Pieces& outer, const Pieces& other, std::int64_t times) {
    const Repeat& rows = outer.dimensions.back();
    const std::int64_t row = outer.inner(0).reach();
    const std::int64_t before = other.start - outer.start - row;  // rows that end by then are skipped
    std::int64_t i = before < 0 ? 0 : before / rows.stride;
    for (; i < rows.count && outer.start + i * rows.stride < other.end() && out_.exact; ++i) {
      count(outer.inner(i), other, times);
    }
  }

  std::int64_t cap_;
  std::int64_t steps_ = 0;
  SharedBytes out_{std::numeric_limits<std::int64_t>::max(), 0, true, 0};
};

using Interval = std::pair<std::int64_t, std::int64_t>;  // [first, second)

void list(const Pieces& pieces, std::vector<Interval>& out) {
  if (pieces.dimensions.empty()) {
    out.emplace_back(pieces.start, pieces.end());
    return;
  }
  for (std::int64_t i = 0; i < pieces.dimensions.back().count; ++i) list(pieces.inner(i), out);
}

// Sorted, and merged where they touch.
std::vector<Interval> intervals(const Pieces& pieces) {
  std::vector<Interval> all;
  list(pieces, all);
  std::ranges::sort(all);
  std::vector<Interval> merged;
  for (const Interval& next : all) {
    if (!merged.empty() && next.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, next.second);
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

// More than `limit` is `limit` + 1.
std::int64_t number_of(const Pieces& pieces, std::int64_t limit) {
  std::int64_t number = 1;
  for (const Repeat& dimension : pieces.dimensions) {
    if (dimension.count > limit / number) return limit + 1;
    number *= dimension.count;
  }
  return number;
}

// For pieces that lie over one another: lists them all.
SharedBytes count_listed(const Pieces& a, const Pieces& b, std::int64_t work_cap) {
  const std::int64_t pieces = number_of(a, work_cap) + number_of(b, work_cap);
  if (pieces > work_cap) return {std::max(a.start, b.start), 0, false, work_cap};
  const std::vector<Interval> of_a = intervals(a);
  const std::vector<Interval> of_b = intervals(b);
  SharedBytes out{0, 0, true, pieces};
  for (auto x = of_a.begin(), y = of_b.begin(); x != of_a.end() && y != of_b.end();) {
    const std::int64_t first = std::max(x->first, y->first);
    const std::int64_t last = std::min(x->second, y->second);
    if (first < last) {
      if (out.count == 0) out.first = first;
      out.count += last - first;
    }
    x->second < y->second ? ++x : ++y;
  }
  return out;
}

}  // namespace

SharedBytes shared_bytes(const View& a, const View& b, std::int64_t work_cap) {
  if (a.plane != b.plane || elements(a) == 0 || elements(b) == 0) return {};
  const Canonical of_a = canonical(a);
  const Canonical of_b = canonical(b);
  if (!of_a.nested || !of_b.nested) return count_listed(of_a.pieces(), of_b.pieces(), work_cap);
  Counter counter(work_cap);
  counter.count(of_a.pieces(), of_b.pieces(), 1);
  return counter.result();
}

SharedBytes shared_bytes_from_the_end(const View& a, const View& b, std::int64_t work_cap) {
  const std::int64_t end = std::max(extent(a).last, extent(b).last);
  // Byte p becomes byte end - 1 - p: elements begin where they ended.
  const auto mirrored = [end](View view) {
    view.offset = end - view.item_bytes - view.offset;
    for (std::int64_t& stride : view.strides) stride = -stride;
    return view;
  };
  SharedBytes found = shared_bytes(mirrored(a), mirrored(b), work_cap);
  if (found.count > 0) found.first = end - 1 - found.first;
  return found;
}

}  // namespace eagle::plane
