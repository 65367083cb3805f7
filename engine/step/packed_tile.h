// PackedTile: a copy of some samples of a tile, side by side in an order of its own, that kernels run over in
// place of the model's planes. Samples that finish give way to live ones; samples that take the same branch
// can be put together.
//
// A buffer of one thread, made once and loaded for one tile after another. Sample i of it is a sample of the
// planes whose number is numbers()[i]; behind the last one the mask is set up to a whole number of blocks, so
// that no sample is left over to run on its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace eagle::step {

// Where the samples of a column lie.
struct ColumnMemory {
  std::byte* data = nullptr;  // the first sample of the first component
  std::int64_t component_stride = 0;
  int components = 1;
  std::int64_t item_bytes = 8;  // 1, 4 or 8
  bool written = false;
};

class PackedTile {
public:
  // `mask` is one of the columns, or npos; with one, samples are padded to blocks of `lanes`.
  static constexpr std::size_t npos = ~std::size_t{0};
  // `first_number`: that sample 0 of the planes has in its batch.
  PackedTile(std::span<const ColumnMemory> columns, std::size_t mask, std::int64_t capacity,
             std::int64_t lanes, std::int64_t first_number = 0);

  // Copies the samples of [begin, end) whose mask is not set.
  void load(std::int64_t begin, std::int64_t end);
  // Writes what the kernels may have changed back to where it came from.
  void store() const;
  // Writes back the samples whose mask is set, and closes the gaps.
  void drop_finished();
  // In ascending order of `keys` (one a sample, small numbers from 0), equal ones in the order that they
  // have.
  void order_by(std::span<const std::int64_t> keys);

  void clear() { size_ = 0; }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t padded() const;
  [[nodiscard]] const std::int64_t* numbers() const { return numbers_.data(); }
  // The same in the batch, for kernels that ask; until samples move.
  [[nodiscard]] const std::int64_t* batch_numbers();
  [[nodiscard]] std::byte* column(std::size_t index) const { return columns_[index].data; }
  [[nodiscard]] std::int64_t component_stride(std::size_t index) const {
    return columns_[index].component_stride;
  }
  // Blocks with a sample whose mask is not set.
  [[nodiscard]] std::int64_t live_blocks() const;

private:
  void pad();
  const std::vector<ColumnMemory> home_;
  std::vector<ColumnMemory> columns_;  // the copy
  std::vector<std::byte> bytes_;
  const std::size_t mask_;
  const std::int64_t capacity_;
  const std::int64_t lanes_;
  const std::int64_t first_number_;
  std::int64_t size_ = 0;
  bool batch_numbers_known_ = false;
  std::vector<std::int64_t> numbers_;
  // Kept for the next call.
  std::vector<std::int64_t> from_, to_, counts_, scratch_numbers_, batch_numbers_;
  std::vector<std::byte> scratch_;
};

// Blocks of `lanes` samples, of which the last may have fewer, with a mask that is not set.
std::int64_t count_live_blocks(const std::byte* masks, std::int64_t samples, std::int64_t lanes);

}  // namespace eagle::step
