// The module eagle._core: the C++ client library as Python sees it. The package's Python sources put names,
// views and the kernel front end on top; nothing else should import it.
#include <nanobind/nanobind.h>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "interruptible.h"
#include "shared_arrays.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  // Sessions and arrays may live in globals until the process ends, which is no leak of this module.
  nb::set_leak_warnings(false);
  m.attr("__version__") = EAGLE_VERSION;
  eagle::python::bind_errors(m);
  eagle::python::find_numpy();
  eagle::python::bind_interrupts();
  eagle::python::bind_kernels(m);
  eagle::python::bind_derivatives(m);
  eagle::python::bind_sessions(m);
  eagle::python::bind_graphs(m);
  eagle::python::bind_functions(m);
  eagle::python::bind_graph_files(m);
  eagle::python::bind_looking(m);
  eagle::python::bind_shared_arrays(m);
  eagle::python::bind_reverse(m);
  eagle::python::bind_runs(m);
  eagle::python::bind_transfers(m);
  eagle::python::bind_dlpack(m);
  eagle::python::bind_gpu_work(m);
}
