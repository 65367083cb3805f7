// numpy's arrays in the memory of a session: the allocator that numpy calls (NEP 49).
#pragma once

#include <nanobind/nanobind.h>

namespace eagle::python {

// Adds `allocator_of(session)`, a capsule as numpy wants it, and `set_allocator(capsule or None)`, which
// makes it the allocator of new arrays of this context and returns the one before.
void bind_shared_arrays(nanobind::module_& m);

}  // namespace eagle::python
