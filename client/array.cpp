#include "eagle/client/array.h"

namespace eagle {

std::vector<std::int64_t> row_major_strides(const Shape& shape, std::uint32_t item_bytes) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = item_bytes;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

}  // namespace eagle
