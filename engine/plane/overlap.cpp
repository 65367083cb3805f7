#include "engine/plane/overlap.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace eagle::plane {
namespace {

// Strides and extents are 63-bit numbers whose sums and products meet here.
__extension__ typedef __int128 Wide;

constexpr Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }  // b > 0
constexpr Wide ceil_div(Wide a, Wide b) { return -floor_div(-a, b); }
constexpr Wide modulo(Wide a, Wide b) { return a - floor_div(a, b) * b; }

// `count` >= 2 steps of `stride` > 0.
struct Dimension {
  std::int64_t stride = 0;
  std::int64_t count = 0;
};

// The bytes of a view in a canonical form: runs of `width` bytes at start + i0*d0.stride + ..., strides
// ascending, all larger than `width`.
struct Runs {
  std::int64_t start = 0;
  std::int64_t width = 0;
  std::vector<Dimension> dimensions;
};

Runs normalise(const View& view) {
  Runs runs;
  runs.start = view.offset;
  runs.width = view.item_bytes;
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 1 || view.strides[i] == 0) continue;
    // A reversed dimension touches the same bytes as a forward one from its other end.
    if (view.strides[i] < 0) runs.start += (view.shape[i] - 1) * view.strides[i];
    dimensions.push_back({std::abs(view.strides[i]), view.shape[i]});
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  for (const Dimension& next : dimensions) {
    if (next.stride <= runs.width) {  // runs that touch or overlap are one run
      runs.width += (next.count - 1) * next.stride;
      continue;
    }
    // i*s + j*k*s with k <= number of i's takes every multiple of s up to the sum: one dimension.
    Dimension* const last = runs.dimensions.empty() ? nullptr : &runs.dimensions.back();
    if (last != nullptr && next.stride % last->stride == 0 && next.stride / last->stride <= last->count) {
      last->count += (next.count - 1) * (next.stride / last->stride);
    } else {
      runs.dimensions.push_back(next);
    }
  }
  return runs;
}

// coefficient * x with 0 <= x <= in_a + in_b: so many steps of view a, and of view b counted backwards.
struct Term {
  std::int64_t coefficient = 0;
  std::int64_t in_a = 0;
  std::int64_t in_b = 0;
  Wide gcd_from = 0;    // of this coefficient and the smaller ones
  Wide reach_from = 0;  // the largest sum of this term and the smaller ones

  [[nodiscard]] Wide bound() const { return Wide{in_a} + in_b; }
};

// The smallest x >= 0 with low <= (a*x mod m) <= high, for 0 <= low <= high < m; none if there is none.
// Euclid's algorithm on (m, a): where no multiple of a lies in the window, count the wraps instead.
std::optional<Wide> first_in_window(Wide a, Wide m, Wide low, Wide high) {
  if (low == 0) return Wide{0};
  a %= m;
  if (a == 0) return std::nullopt;
  const Wide x = ceil_div(low, a);
  if (x * a <= high) return x;
  const std::optional<Wide> wraps = first_in_window(m, a, modulo(-high, a), modulo(-low, a));
  if (!wraps) return std::nullopt;
  return ceil_div(low + m * *wraps, a);
}

// Do numbers x_k in [0, bound_k] exist with low <= sum(coefficient_k * x_k) <= high? A depth-first search
// over the terms, largest coefficient first. Two prunings keep it short: what the smaller terms can still
// reach bounds x_k from both sides, and x_k that leave no multiple of the smaller terms' gcd in the window
// are jumped over. With one or two terms, or strides nested as in any array, the first try decides.
class Search {
public:
  Search(std::vector<Term> terms, std::int64_t cap) : terms_(std::move(terms)), left_(cap) {
    std::sort(terms_.begin(), terms_.end(),
              [](const Term& a, const Term& b) { return a.coefficient > b.coefficient; });
    Wide gcd = 0;
    Wide reach = 0;
    for (auto term = terms_.rbegin(); term != terms_.rend(); ++term) {
      gcd = std::gcd(static_cast<std::int64_t>(gcd), term->coefficient);
      reach += term->coefficient * term->bound();
      term->gcd_from = gcd;
      term->reach_from = reach;
    }
    solution_.resize(terms_.size());
  }

  enum class Answer { no, yes, capped };
  Answer run(Wide low, Wide high) { return solve(0, low, high); }

  [[nodiscard]] std::int64_t left() const { return left_; }
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] const std::vector<Wide>& solution() const { return solution_; }

private:
  Answer solve(std::size_t k, Wide low, Wide high) {
    if (k == terms_.size()) return low <= 0 && high >= 0 ? Answer::yes : Answer::no;
    const Term& term = terms_[k];
    const bool last = k + 1 == terms_.size();
    const Wide rest_reach = last ? 0 : terms_[k + 1].reach_from;
    const Wide rest_gcd = last ? 0 : terms_[k + 1].gcd_from;
    Wide x = std::max<Wide>(0, ceil_div(low - rest_reach, term.coefficient));
    const Wide end = std::min(term.bound(), floor_div(high, term.coefficient));
    for (; x <= end; ++x) {
      if (left_-- <= 0) return Answer::capped;
      if (rest_gcd > 0) {
        const std::optional<Wide> next = next_candidate(x, term.coefficient, rest_gcd, low, high);
        if (!next || *next > end) return Answer::no;
        x = *next;
      }
      solution_[k] = x;
      const Wide taken = term.coefficient * x;
      if (const Answer answer = solve(k + 1, low - taken, high - taken); answer != Answer::no) return answer;
    }
    return Answer::no;
  }

  // The smallest x >= `from` for which a multiple of `gcd` lies in [low - c*x, high - c*x].
  static std::optional<Wide> next_candidate(Wide from, Wide c, Wide gcd, Wide low, Wide high) {
    const Wide window = high - low;
    if (window + 1 >= gcd) return from;
    // (high - c*from - c*t) mod gcd <= window, in terms of t >= 0.
    const Wide begin = modulo(-(high - c * from), gcd);
    if (begin + window >= gcd) return from;  // the window contains 0
    const std::optional<Wide> t = first_in_window(modulo(-c, gcd), gcd, begin, begin + window);
    if (!t) return std::nullopt;
    return from + *t;
  }

  std::vector<Term> terms_;
  std::vector<Wide> solution_;
  std::int64_t left_;
};

std::vector<Term> terms_of(const Runs& a, const Runs& b) {
  std::vector<Term> terms;
  for (const Dimension& d : a.dimensions) terms.push_back({d.stride, d.count - 1, 0, 0, 0});
  for (const Dimension& d : b.dimensions) {
    const auto same = std::find_if(terms.begin(), terms.end(),
                                   [&](const Term& term) { return term.coefficient == d.stride; });
    if (same != terms.end()) {
      same->in_b = d.count - 1;
    } else {
      terms.push_back({d.stride, 0, d.count - 1, 0, 0});
    }
  }
  return terms;
}

}  // namespace

Overlap overlap(const View& a, const View& b, std::int64_t work_cap) {
  if (a.plane != b.plane) return {};
  const Extent extent_a = extent(a);
  const Extent extent_b = extent(b);
  // An empty view has the extent (0, 0), which meets nothing.
  if (extent_a.first >= extent_b.last || extent_b.first >= extent_a.last) return {};

  const Runs runs_a = normalise(a);
  const Runs runs_b = normalise(b);
  Search search(terms_of(runs_a, runs_b), work_cap);
  // A run of a at A meets a run of b at B iff -width_a < A - B < width_b. With b's steps counted from its
  // far end, A - B is start_a - start_b - reach_b plus a sum of non-negative terms.
  Wide base = Wide{runs_a.start} - runs_b.start;
  for (const Dimension& d : runs_b.dimensions) base -= Wide{d.stride} * (d.count - 1);
  const Search::Answer answer = search.run(1 - runs_a.width - base, runs_b.width - 1 - base);

  Overlap out;
  out.steps = work_cap - std::max<std::int64_t>(search.left(), 0);
  out.overlaps = answer != Search::Answer::no;
  out.exact = answer != Search::Answer::capped;
  if (answer == Search::Answer::yes) {
    Wide run_a = runs_a.start;
    Wide run_b = runs_a.start - base;
    for (std::size_t k = 0; k < search.terms().size(); ++k) {
      const Term& term = search.terms()[k];
      const Wide in_a = std::min<Wide>(search.solution()[k], term.in_a);
      run_a += term.coefficient * in_a;
      run_b -= term.coefficient * (search.solution()[k] - in_a);
    }
    out.first = static_cast<std::int64_t>(std::max(run_a, run_b));
  }
  return out;
}

Band band_of(const View& view) {
  const Extent bounds = extent(view);
  const Band whole{0, bounds.first, bounds.last};
  if (bounds.first == bounds.last) return whole;
  const Runs runs = normalise(view);
  if (runs.dimensions.empty()) return whole;
  const Dimension& rows = runs.dimensions.back();
  const std::int64_t in_a_row = bounds.last - bounds.first - (rows.count - 1) * rows.stride;
  const std::int64_t first = runs.start % rows.stride;
  if (in_a_row > rows.stride - first) return whole;  // it runs over the end of a row
  return {rows.stride, first, first + in_a_row};
}

}  // namespace eagle::plane
