#include "gil.h"

#include <cxxabi.h>
#include <unistd.h>

namespace eagle::python {

namespace nb = nanobind;

namespace {

// What `take` returns, or never returns at all: the unwinding that Python starts must not go on through
// frames that may not throw, and a handler that does not end holds it.
template <typename Take>
auto take_or_stay(const Take& take) noexcept {
  try {
    return take();
  } catch (const abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

}  // namespace

void Released::take() noexcept {
  take_or_stay([this] { PyEval_RestoreThread(state_); });
}

void give_up(PyObject* object) noexcept {
  if (!nb::is_alive()) return;
  const Acquired gil;
  take_or_stay([object] { Py_DECREF(object); });
}

Acquired::Acquired() noexcept : state_(take_or_stay([] { return PyGILState_Ensure(); })) {}

}  // namespace eagle::python
