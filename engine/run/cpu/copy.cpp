#include "engine/run/cpu/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/run/cpu/team.h"

namespace eagle::run {
namespace {

// Elements of a row that one thread takes at a time.
constexpr std::int64_t chunk_elements = 4096;

// Unaligned, because clients choose the offsets and strides of views.
template <typename T>
T load(const std::byte* address) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<unsigned char>(*address) != 0;
  } else {
    T value;
    std::memcpy(&value, address, sizeof value);
    return value;
  }
}

template <typename T>
void store(std::byte* address, T value) {
  std::memcpy(address, &value, sizeof value);
}

// As kernels convert (docs/manual/kernels.md): real to integer towards zero, out of range to the nearest
// limit, NaN to 0; to bool whether it is not 0; integers are cut to size.
template <typename From, typename To>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(value)) return 0;
    // The smallest value is a power of two, hence exact; one past the largest is its opposite.
    if (value < static_cast<From>(Limits::min())) return Limits::min();
    if (value >= -static_cast<From>(Limits::min())) return Limits::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

std::byte* address_of(const plane::View& view, std::span<const PlaneMemory> planes) {
  std::byte* data = planes[view.plane].data;
  return data == nullptr ? nullptr : data + view.offset;
}

}  // namespace

template <typename From, typename To>
void BoundCopy::convert_row(const BoundCopy& copy, const std::byte* source, std::byte* destination,
                            std::int64_t count) {
  const std::int64_t from = copy.inner_.source;
  const std::int64_t to = copy.inner_.destination;
  for (std::int64_t i = 0; i < count; ++i) {
    store(destination + i * to, converted<From, To>(load<From>(source + i * from)));
  }
}

void BoundCopy::bytes_row(const BoundCopy& copy, const std::byte* source, std::byte* destination,
                          std::int64_t count) {
  const auto item = static_cast<std::int64_t>(copy.item_bytes_);
  if (copy.inner_.source == item && copy.inner_.destination == item) {
    std::memcpy(destination, source, static_cast<std::size_t>(count * item));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * copy.inner_.destination, source + i * copy.inner_.source, copy.item_bytes_);
  }
}

template <typename From>
BoundCopy::Row BoundCopy::row_from(plane::DType to) {
  switch (to) {
    case plane::DType::f64:
      return convert_row<From, double>;
    case plane::DType::f32:
      return convert_row<From, float>;
    case plane::DType::i64:
      return convert_row<From, std::int64_t>;
    case plane::DType::i32:
      return convert_row<From, std::int32_t>;
    case plane::DType::boolean:
      return convert_row<From, bool>;
    case plane::DType::other:
      break;
  }
  return bytes_row;
}

BoundCopy::Row BoundCopy::row_of(const graph::Copy& copy) {
  const plane::DType to = copy.destination.dtype;
  if (copy.source.dtype == to) {
    // The common sizes get loops of their own, which compilers vectorise.
    switch (copy.destination.item_bytes) {
      case 4:
        return convert_row<std::uint32_t, std::uint32_t>;
      case 8:
        return convert_row<std::uint64_t, std::uint64_t>;
      default:
        return bytes_row;
    }
  }
  switch (copy.source.dtype) {
    case plane::DType::f64:
      return row_from<double>(to);
    case plane::DType::f32:
      return row_from<float>(to);
    case plane::DType::i64:
      return row_from<std::int64_t>(to);
    case plane::DType::i32:
      return row_from<std::int32_t>(to);
    case plane::DType::boolean:
      return row_from<bool>(to);
    case plane::DType::other:
      break;
  }
  return bytes_row;
}

StatusOr<BoundCopy> BoundCopy::bind(const graph::Copy& whole, std::span<const PlaneMemory> planes) {
  BoundCopy bound;
  graph::Copy copy = whole;
  if (whole.index) {
    plane::View& stack = whole.into_stack() ? copy.destination : copy.source;
    const std::byte* const cell = address_of(whole.index->view, planes);
    if (cell == nullptr) {
      return Status(
          Reason::private_array,
          "copy: plane '" + whole.index->name +
              "' lies in memory that only the client can reach; make the array with the session, or "
              "run in process");
    }
    bound.index_ = Index{cell, whole.index->view.item_bytes, stack.shape.front(), stack.strides.front(),
                         whole.into_stack()};
    stack.shape.erase(stack.shape.begin());
    stack.strides.erase(stack.strides.begin());
  }
  bound.elements_ = plane::elements(copy.source);
  if (bound.elements_ == 0) return bound;
  bound.source_ = address_of(copy.source, planes);
  bound.destination_ = address_of(copy.destination, planes);
  if (bound.source_ == nullptr || bound.destination_ == nullptr) {
    return Status(Reason::private_array,
                  "copy: plane " + std::string(bound.source_ == nullptr ? "'src'" : "'dst'") +
                      " lies in memory that only the client can reach; make the array with the session, or "
                      "run in process");
  }
  bound.item_bytes_ = copy.destination.item_bytes;
  bound.row_ = row_of(copy);
  bound.simplify(copy);
  bound.first_source_ = bound.source_;
  bound.first_destination_ = bound.destination_;
  const auto item = static_cast<std::int64_t>(bound.item_bytes_);
  const bool in_one_piece = bound.inner_.source == item && bound.inner_.destination == item;
  if (copy.source.dtype == copy.destination.dtype && in_one_piece) bound.row_ = bytes_row;
  return bound;
}

// Axes in the order of the destination's memory, forwards, and those that continue each other as one.
void BoundCopy::simplify(const graph::Copy& copy) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < copy.source.shape.size(); ++i) {
    Axis axis{copy.source.shape[i], copy.source.strides[i], copy.destination.strides[i]};
    if (axis.count == 1) continue;
    if (axis.destination < 0) {
      source_ += (axis.count - 1) * axis.source;
      destination_ += (axis.count - 1) * axis.destination;
      axis.source = -axis.source;
      axis.destination = -axis.destination;
    }
    axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.destination > b.destination; });
  for (const Axis& axis : axes) {
    Axis* const around = outer_.empty() ? nullptr : &outer_.back();
    if (around != nullptr && around->source == axis.source * axis.count &&
        around->destination == axis.destination * axis.count) {
      *around = {around->count * axis.count, axis.source, axis.destination};
    } else {
      outer_.push_back(axis);
    }
  }
  if (outer_.empty()) {
    inner_ = {1, static_cast<std::int64_t>(copy.source.item_bytes), static_cast<std::int64_t>(item_bytes_)};
  } else {
    inner_ = outer_.back();
    outer_.pop_back();
  }
}

std::int64_t BoundCopy::chunks() const {
  return elements_ / inner_.count * ((inner_.count + chunk_elements - 1) / chunk_elements);
}

// Chunks are numbered along the rows, row after row.
void BoundCopy::run_chunks(std::int64_t begin, std::int64_t end) const {
  const std::int64_t in_a_row = (inner_.count + chunk_elements - 1) / chunk_elements;
  for (std::int64_t chunk = begin; chunk < end; ++chunk) {
    const std::byte* source = source_;
    std::byte* destination = destination_;
    std::int64_t row = chunk / in_a_row;
    for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
      const std::int64_t index = row % axis->count;
      row /= axis->count;
      source += index * axis->source;
      destination += index * axis->destination;
    }
    const std::int64_t first = chunk % in_a_row * chunk_elements;
    row_(*this, source + first * inner_.source, destination + first * inner_.destination,
         std::min(chunk_elements, inner_.count - first));
  }
}

// Short rows are looked at together.
void BoundCopy::run_share(Range chunks, const Slice& slice, Place& place) const {
  const std::int64_t at_once = slice.least() ? 1 : std::max<std::int64_t>(chunk_elements / inner_.count, 1);
  const std::int64_t wanted = chunks.end - chunks.begin;
  while (place.done < wanted) {
    const std::int64_t next = std::min(place.done + at_once, wanted);
    run_chunks(chunks.begin + place.done, chunks.begin + next);
    place.done = next;
    if (slice.over()) return;
  }
}

int BoundCopy::threads(int team) const {
  return elements_ * static_cast<std::int64_t>(item_bytes_) <= inline_copy_bytes ? 1 : team;
}

// The cell is loaded once: whoever stores to it meanwhile decides which row is meant, never whether it is
// one.
void BoundCopy::choose_row() {
  std::int64_t row = 0;
  if (index_->bytes == sizeof(std::int32_t)) {
    row = load<std::int32_t>(index_->address);
  } else {
    row = load<std::int64_t>(index_->address);
  }
  const std::int64_t shift = std::clamp<std::int64_t>(row, 0, index_->rows - 1) * index_->stride;
  source_ = first_source_ + (index_->into_stack ? 0 : shift);
  destination_ = first_destination_ + (index_->into_stack ? shift : 0);
}

void BoundCopy::run(const Piece& piece, Progress& progress) {
  if (elements_ == 0) return;
  if (index_ && !progress.left) choose_row();
  const std::int64_t whole = chunks();
  const int shares = threads(piece.team);
  const std::span places = piece.places.first(static_cast<std::size_t>(shares));
  if (!std::exchange(progress.left, false)) std::fill(places.begin(), places.end(), Place());
  run_shares(shares, [&](int share) {
    run_share(even_share(whole, share, shares), piece.slice, places[static_cast<std::size_t>(share)]);
  });
  for (int share = 0; share < shares; ++share) {
    const Range all = even_share(whole, share, shares);
    progress.left |= places[static_cast<std::size_t>(share)].done < all.end - all.begin;
  }
}

}  // namespace eagle::run
