#include "eagle/client/array.h"

#include "engine/plane/packed.h"

namespace eagle {

StatusOr<DeviceAddress> Buffer::on_device() {
  return Status(
      Reason::bad_value,
      "the array is in memory of the host, which CUDA does not have; make it with device=\"cuda:0\"");
}

std::vector<std::int64_t> row_major_strides(const Shape& shape, std::uint32_t item_bytes) {
  return plane::row_major_strides(shape, item_bytes);
}

}  // namespace eagle
