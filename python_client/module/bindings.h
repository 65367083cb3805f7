// The parts of the module `eagle._core`, each defined in the file of its name.
#pragma once

#include <nanobind/nanobind.h>

namespace eagle::python {

namespace nb = nanobind;

void bind_kernels(nb::module_& m);      // kernels.cpp
void bind_derivatives(nb::module_& m);  // derivatives.cpp, after kernels.cpp
void bind_sessions(nb::module_& m);     // sessions.cpp
void bind_graphs(nb::module_& m);       // graphs.cpp
void bind_functions(nb::module_& m);    // functions.cpp
void bind_graph_files(nb::module_& m);  // graph_files.cpp, after graphs.cpp
void bind_looking(nb::module_& m);      // looking.cpp, after graphs.cpp
void bind_runs(nb::module_& m);         // runs.cpp
void bind_reverse(nb::module_& m);      // reverse.cpp, after graphs.cpp and before runs.cpp
void bind_transfers(nb::module_& m);    // transfers.cpp
void bind_dlpack(nb::module_& m);       // dlpack.cpp
void bind_gpu_work(nb::module_& m);     // gpu_work.cpp

}  // namespace eagle::python
