#include "engine/step/packed_tile.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace eagle::step {
namespace {

// to[t[i]] = from[f[i]], elements of one size; without indices: i itself.
template <typename Element, bool to_indexed, bool from_indexed>
void move_elements(std::byte* to, const std::int64_t* t, const std::byte* from, const std::int64_t* f,
                   std::int64_t count) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Element));
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(to + (to_indexed ? t[i] : i) * size, from + (from_indexed ? f[i] : i) * size,
                sizeof(Element));
}

template <typename Element>
void move_elements(std::byte* to, const std::int64_t* t, const std::byte* from, const std::int64_t* f,
                   std::int64_t count) {
  if (t == nullptr) return move_elements<Element, false, true>(to, t, from, f, count);
  if (f == nullptr) return move_elements<Element, true, false>(to, t, from, f, count);
  move_elements<Element, true, true>(to, t, from, f, count);
}

// All components of a column. At least one of `t` and `f` is there.
void move_samples(const ColumnMemory& to, const std::int64_t* t, const ColumnMemory& from,
                  const std::int64_t* f, std::int64_t count) {
  for (int c = 0; c < to.components; ++c) {
    std::byte* target = to.data + c * to.component_stride;
    const std::byte* source = from.data + c * from.component_stride;
    if (to.item_bytes == 8) {
      move_elements<std::uint64_t>(target, t, source, f, count);
    } else if (to.item_bytes == 4) {
      move_elements<std::uint32_t>(target, t, source, f, count);
    } else {
      move_elements<std::uint8_t>(target, t, source, f, count);
    }
  }
}

// The places in [begin, end) whose mask is set, or is not, in order; how many there are. `places` has room
// for one more than there may be: nothing branches on a mask, which nobody could predict.
std::int64_t find_places(const std::byte* masks, bool set, std::int64_t begin, std::int64_t end,
                         std::int64_t* places) {
  std::int64_t found = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    places[found] = i;
    found += (masks[i] != std::byte{0}) == set ? 1 : 0;
  }
  return found;
}

// Consecutive ones, to the start of `to`.
void copy_samples(const ColumnMemory& to, const ColumnMemory& from, std::int64_t first, std::int64_t count) {
  for (int c = 0; c < to.components; ++c) {
    std::memcpy(to.data + c * to.component_stride,
                from.data + c * from.component_stride + first * from.item_bytes,
                static_cast<std::size_t>(count * from.item_bytes));
  }
}

std::int64_t rounded(std::int64_t count, std::int64_t grain) { return (count + grain - 1) / grain * grain; }

}  // namespace

PackedTile::PackedTile(std::span<const ColumnMemory> columns, std::size_t mask, std::int64_t capacity,
                       std::int64_t lanes, std::int64_t first_number)
    : home_(columns.begin(), columns.end()),
      columns_(home_),
      mask_(mask),
      capacity_(rounded(capacity, lanes)),
      lanes_(lanes),
      first_number_(first_number),
      numbers_(static_cast<std::size_t>(capacity_) + 1),
      from_(numbers_.size()),
      to_(numbers_.size()) {
  constexpr std::int64_t line = 64;
  std::int64_t at = 0;
  std::vector<std::int64_t> offsets;
  for (ColumnMemory& column : columns_) {
    offsets.push_back(at);
    // An odd number of cache lines apart, so that columns do not fall on the same sets of the cache.
    column.component_stride = rounded(capacity_ * column.item_bytes, line) + line;
    at += column.component_stride * column.components;
  }
  bytes_.resize(static_cast<std::size_t>(at + line));
  std::byte* base =
      bytes_.data() +
      (line - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(bytes_.data()) % line)) % line;
  for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].data = base + offsets[i];
}

const std::int64_t* PackedTile::batch_numbers() {
  if (first_number_ == 0) return numbers_.data();
  if (batch_numbers_known_) return batch_numbers_.data();
  batch_numbers_known_ = true;
  batch_numbers_.resize(numbers_.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(padded()); ++i)
    batch_numbers_[i] = numbers_[i] + first_number_;
  return batch_numbers_.data();
}

std::int64_t PackedTile::padded() const { return mask_ == npos ? size_ : rounded(size_, lanes_); }

// Copies of the first sample, which take no step but must be numbers that kernels may meet.
void PackedTile::pad() {
  if (mask_ == npos || size_ == 0) return;
  for (std::int64_t i = size_; i < padded(); ++i) numbers_[static_cast<std::size_t>(i)] = numbers_[0];
  std::memset(columns_[mask_].data + size_, 1, static_cast<std::size_t>(padded() - size_));
}

void PackedTile::load(std::int64_t begin, std::int64_t end) {
  size_ = 0;
  batch_numbers_known_ = false;
  const std::byte* masks = mask_ == npos ? nullptr : home_[mask_].data;
  if (masks == nullptr) {
    size_ = end - begin;
    std::iota(numbers_.begin(), numbers_.begin() + size_, begin);
  } else {
    size_ = find_places(masks, false, begin, end, numbers_.data());
  }
  const bool all = size_ == end - begin;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (all) {
      copy_samples(columns_[c], home_[c], begin, size_);
    } else {
      move_samples(columns_[c], nullptr, home_[c], numbers_.data(), size_);
    }
  }
  // Who shares the plane may have set masks meanwhile.
  if (mask_ != npos) std::memset(columns_[mask_].data, 0, static_cast<std::size_t>(size_));
  pad();
}

void PackedTile::store() const {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (home_[c].written) move_samples(home_[c], numbers_.data(), columns_[c], nullptr, size_);
  }
}

void PackedTile::drop_finished() {
  const std::byte* masks = columns_[mask_].data;
  const std::int64_t finished = find_places(masks, true, 0, size_, from_.data());
  if (finished == 0) return;
  batch_numbers_known_ = false;
  for (std::int64_t i = 0; i < finished; ++i)
    to_[static_cast<std::size_t>(i)] = numbers_[static_cast<std::size_t>(from_[static_cast<std::size_t>(i)])];
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (home_[c].written) move_samples(home_[c], to_.data(), columns_[c], from_.data(), finished);
  }
  // Gaps before the new end are filled with the live samples behind it.
  const std::int64_t left = size_ - finished;
  std::swap(from_, to_);
  const std::int64_t gaps = std::lower_bound(to_.begin(), to_.begin() + finished, left) - to_.begin();
  find_places(masks, false, left, size_, from_.data());
  for (const ColumnMemory& column : columns_) move_samples(column, to_.data(), column, from_.data(), gaps);
  for (std::int64_t i = 0; i < gaps; ++i)
    numbers_[static_cast<std::size_t>(to_[static_cast<std::size_t>(i)])] =
        numbers_[static_cast<std::size_t>(from_[static_cast<std::size_t>(i)])];
  size_ = left;
  pad();
}

void PackedTile::order_by(std::span<const std::int64_t> keys) {
  // Counting: the samples of each key, then where each key begins.
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < size_; ++i) most = std::max(most, keys[static_cast<std::size_t>(i)]);
  counts_.assign(static_cast<std::size_t>(most) + 2, 0);
  for (std::int64_t i = 0; i < size_; ++i)
    ++counts_[static_cast<std::size_t>(keys[static_cast<std::size_t>(i)]) + 1];
  for (std::size_t k = 1; k < counts_.size(); ++k) counts_[k] += counts_[k - 1];
  for (std::int64_t i = 0; i < size_; ++i)
    from_[static_cast<std::size_t>(counts_[static_cast<std::size_t>(keys[static_cast<std::size_t>(i)])]++)] =
        i;
  if (std::is_sorted(from_.begin(), from_.begin() + size_)) return;
  batch_numbers_known_ = false;

  scratch_numbers_.assign(numbers_.begin(), numbers_.begin() + size_);
  for (std::int64_t i = 0; i < size_; ++i)
    numbers_[static_cast<std::size_t>(i)] =
        scratch_numbers_[static_cast<std::size_t>(from_[static_cast<std::size_t>(i)])];
  for (ColumnMemory& column : columns_) {
    scratch_.resize(static_cast<std::size_t>(size_ * column.item_bytes));
    ColumnMemory one = column;
    one.components = 1;
    ColumnMemory copy = one;
    copy.data = scratch_.data();
    for (int c = 0; c < column.components; ++c) {
      one.data = column.data + c * column.component_stride;
      std::memcpy(scratch_.data(), one.data, scratch_.size());
      move_samples(one, nullptr, copy, from_.data(), size_);
    }
  }
}

std::int64_t PackedTile::live_blocks() const {
  if (mask_ == npos) return (size_ + lanes_ - 1) / lanes_;
  return count_live_blocks(columns_[mask_].data, size_, lanes_);
}

std::int64_t count_live_blocks(const std::byte* masks, std::int64_t samples, std::int64_t lanes) {
  std::int64_t blocks = 0;
  for (std::int64_t first = 0; first < samples; first += lanes) {
    const std::int64_t count = std::min(lanes, samples - first);
    std::uint8_t clear = 0;  // no branch: the compiler makes vectors of it
    for (std::int64_t i = 0; i < count; ++i) clear |= masks[first + i] == std::byte{0} ? 1 : 0;
    blocks += clear;
  }
  return blocks;
}

}  // namespace eagle::step
