#include "engine/plane/torn_views.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engine/plane/overlap.h"

namespace eagle::plane {
namespace {

struct Axis {
  std::int64_t stride = 0;
  std::int64_t extent = 0;
  friend auto operator<=>(const Axis&, const Axis&) = default;
};

// Those that move, the innermost first. Order and direction do not matter to which bytes there are.
std::vector<Axis> axes_of(const View& view) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] > 1 && view.strides[i] != 0) axes.push_back({std::abs(view.strides[i]), view.shape[i]});
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool is_dense(const View& view) {
  std::int64_t run = view.item_bytes;
  for (const Axis& axis : axes_of(view)) {
    if (axis.stride != run) return false;
    run *= axis.extent;
  }
  return true;
}

}  // namespace

bool covers(const View& written, const View& view) {
  if (elements(view) == 0) return true;
  if (elements(written) == 0) return false;
  const Extent all = extent(written);
  const Extent wanted = extent(view);
  if (wanted.first < all.first || wanted.last > all.last) return false;
  if (is_dense(written)) return true;
  return all.first == wanted.first && written.item_bytes == view.item_bytes &&
         axes_of(written) == axes_of(view);
}

void TornViews::mark(View view, std::string what) {
  if (elements(view) == 0) return;
  view.plane = 0;
  const std::lock_guard lock(mutex_);
  std::erase_if(marks_, [&](const Mark& mark) { return covers(view, mark.view); });
  if (marks_.size() == most_marks) join_all();
  marks_.push_back({++last_, std::move(view), std::move(what)});
  any_.store(true, std::memory_order_release);
}

void TornViews::join_all() {
  Extent all = extent(marks_.front().view);
  for (const Mark& mark : marks_) {
    const Extent one = extent(mark.view);
    all = {std::min(all.first, one.first), std::max(all.last, one.last)};
  }
  const View bytes{0, all.first, DType::boolean, 1, {all.last - all.first}, {1}};
  std::string what = marks_.front().what + " and " + std::to_string(marks_.size() - 1) + " more";
  marks_.clear();
  marks_.push_back({++last_, bytes, std::move(what)});
}

std::vector<TornViews::Mark> TornViews::marks() const {
  const std::lock_guard lock(mutex_);
  return marks_;
}

void TornViews::drop(std::span<const std::uint64_t> numbers) {
  const std::lock_guard lock(mutex_);
  std::erase_if(marks_, [&](const Mark& mark) {
    return std::find(numbers.begin(), numbers.end(), mark.number) != numbers.end();
  });
  any_.store(!marks_.empty(), std::memory_order_release);
}

std::size_t TornViews::accept(const View& view) {
  View wanted = view;
  wanted.plane = 0;
  const std::lock_guard lock(mutex_);
  const std::size_t dropped =
      std::erase_if(marks_, [&](const Mark& mark) { return overlap(wanted, mark.view).overlaps; });
  any_.store(!marks_.empty(), std::memory_order_release);
  return dropped;
}

}  // namespace eagle::plane
