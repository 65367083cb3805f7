// Arrays: memory of a session, as a C++ program holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/plane/view.h"

namespace eagle {

using Shape = std::vector<std::int64_t>;
using plane::DType;

// The dtype of a C++ element type: double, float, std::int64_t, std::int32_t, bool.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};

// A plane of a graph that nobody else sees, made by Graph::scratch: it has a name and a size, and no memory
// here.
struct ScratchPlane {
  std::string name;
  std::uint64_t bytes = 0;
  mutable std::weak_ptr<const void> graph;  // whose it is; kept by Graph
};

// An array as the caller holds it: address and strides (bytes), nothing owned. The address may lie in a
// session's plane or in the caller's own memory; the session finds out which. `owner` (optional) keeps
// the memory alive for as long as a graph holds the view.
struct ArrayView {
  void* data = nullptr;
  DType dtype = DType::f64;
  std::uint32_t item_bytes = 8;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  bool read_only = false;
  std::shared_ptr<const void> owner;
  // Where set, the view is one of this plane, and `data` its offset there in place of an address.
  std::shared_ptr<const ScratchPlane> scratch = nullptr;
};

// Row-major bytes from one element to the next along each axis.
std::vector<std::int64_t> row_major_strides(const Shape& shape, std::uint32_t item_bytes);

// What fresh memory holds: zeros, or whatever was there, which is quicker where memory is used again.
enum class Contents : std::uint8_t { zeros, any };

// Where an array on a GPU lies for CUDA in this process.
struct DeviceAddress {
  std::uint64_t pointer = 0;
  int ordinal = 0;   // of the GPU, as this process numbers them
  std::string uuid;  // of the GPU
  std::shared_ptr<const void> keep_alive;
};

// Memory on a GPU that this process has from elsewhere (CuPy, torch, its own cudaMalloc): `bytes` from an
// address on, which stay there as long as `owner` does.
struct ImportedMemory {
  std::uint64_t pointer = 0;
  std::uint64_t bytes = 0;
  std::shared_ptr<const void> owner;
};

// A block of a session's memory: 64-byte aligned, shared with the engine that computes.
// Freed when the last owner goes (graphs that use it are owners too), later than its session if need be.
class Buffer {
public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // The array is on another machine or on a GPU, and this a copy: see Session::fetch and Session::send.
  [[nodiscard]] bool copied() const { return copied_; }
  // "cuda:0", as the host numbers its GPUs; empty for memory of the host.
  [[nodiscard]] const std::string& device() const { return device_; }
  // Opens memory on a GPU in this process, once, for as long as this is. BAD_VALUE for memory of the host;
  // MIXED_DEVICES where this process does not see that GPU; what the daemon and the driver say.
  virtual StatusOr<DeviceAddress> on_device();

protected:
  Buffer(std::byte* data, std::uint64_t bytes, bool copied = false, std::string device = {})
      : data_(data), bytes_(bytes), copied_(copied || !device.empty()), device_(std::move(device)) {}

private:
  std::byte* data_;
  std::uint64_t bytes_;
  bool copied_;
  std::string device_;
};

// A row-major array in a session's memory. Copies share the memory.
//
//   auto x = session.zeros<double>({1000});
//   x->span()[3] = 1.5;
template <typename T>
class Array {
public:
  Array(std::shared_ptr<Buffer> buffer, Shape shape) : buffer_(std::move(buffer)), shape_(std::move(shape)) {}

  [[nodiscard]] std::span<T> span() const {
    return {reinterpret_cast<T*>(buffer_->data()), static_cast<std::size_t>(size())};
  }
  [[nodiscard]] T& operator[](std::int64_t i) const { return span()[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::int64_t size() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape_) n *= extent;
    return n;
  }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] ArrayView view() const {
    return {
        buffer_->data(), DTypeOf<T>::value, sizeof(T), shape_, row_major_strides(shape_, sizeof(T)), false,
        buffer_};
  }
  operator ArrayView() const { return view(); }  // NOLINT(google-explicit-constructor)

private:
  std::shared_ptr<Buffer> buffer_;
  Shape shape_;
};

}  // namespace eagle
