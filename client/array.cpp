#include "eagle/client/array.h"

#include "engine/plane/packed.h"

namespace eagle {

std::vector<std::int64_t> row_major_strides(const Shape& shape, std::uint32_t item_bytes) {
  return plane::row_major_strides(shape, item_bytes);
}

}  // namespace eagle
