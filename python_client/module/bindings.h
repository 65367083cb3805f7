// The parts of the module `eagle._core`, each defined in the file of its name.
#pragma once

#include <nanobind/nanobind.h>

namespace eagle::python {

namespace nb = nanobind;

void bind_kernels(nb::module_& m);   // kernels.cpp
void bind_sessions(nb::module_& m);  // sessions.cpp
void bind_graphs(nb::module_& m);    // graphs.cpp

}  // namespace eagle::python
