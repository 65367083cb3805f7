// numpy arrays as the client library sees them, and memory of a session as numpy arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "eagle/client/array.h"
#include "eagle/client/session.h"

namespace eagle::python {

namespace nb = nanobind;

// The array's address, shape and strides; holds a reference to it for as long as a view lives. `where` begins
// the text of an error. WRONG_TYPE for what is no numpy array, for masked arrays and arrays of objects.
ArrayView view_of(nb::handle array, const std::string& where);

// A numpy array over `bytes` of fresh session memory, row-major. It keeps the memory, and `keep` (the Python
// object of its session).
nb::object allocate_array(const Session& session, const Shape& shape, std::string_view dtype,
                          std::string_view label, nb::object keep);

}  // namespace eagle::python
