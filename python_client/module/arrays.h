// numpy arrays as the client library sees them, and memory of a session as numpy arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "eagle/client/array.h"
#include "eagle/client/session.h"

namespace eagle::python {

namespace nb = nanobind;

// Looks numpy's classes up, once, on import: a lookup gives up the GIL, so it must not hold a lock of ours
// (such as that of a function's static variable) that a thread with the GIL may wait for.
void find_numpy();

// The array's address, shape and strides; holds a reference to it for as long as a view lives. `where` begins
// the text of an error. WRONG_TYPE for what is no numpy array, for masked arrays and arrays of objects.
ArrayView view_of(nb::handle array, const std::string& where);

// The address of a numpy array of any kind. WRONG_TYPE for anything else.
const void* address_of(nb::handle array, const std::string& where);

// A numpy array over `bytes` of fresh session memory, row-major. It keeps the memory, and `keep` (the Python
// object of its session).
nb::object allocate_array(const Session& session, const Shape& shape, std::string_view dtype,
                          std::string_view label, Contents contents, nb::object keep,
                          std::string_view device);

// Memory on a GPU of this process as the session's array, which `owner` keeps. `item_bytes`: of an element,
// `typestr` in numpy's words.
struct ArrayOnDevice {
  std::uint64_t pointer = 0;  // of the first element
  Shape shape;
  std::vector<std::int64_t> strides;  // bytes
  std::string typestr;
  std::uint32_t item_bytes = 0;
  bool read_only = false;
};
nb::object imported_array(const Session& session, const ArrayOnDevice& array, nb::handle owner,
                          std::string_view label, nb::object keep);

// The same of an array that was published, read-only where it was granted so. Its dtype is numpy's void where
// it is none of those of planes.
nb::object published_array(PublishedArray array, nb::object keep);

// A numpy array over memory that the view's owner keeps; void items where the dtype is none of those of
// planes.
nb::object array_over(const ArrayView& view);

}  // namespace eagle::python
