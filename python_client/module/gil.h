// The GIL, in threads that may outlive the interpreter.
//
// Python ends a thread that asks for the GIL after the interpreter began to finish by unwinding it
// (until 3.13), and C++ code that may not throw turns that into an abort of the process. Threads that took or
// gave up the GIL through these classes stay where they are instead, until the process ends a moment later.
#pragma once

#include <nanobind/nanobind.h>

namespace eagle::python {

// Gives up the GIL for as long as it lives.
class Released {
public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() { take(); }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

  // Takes it for a while, in the thread that gave it up.
  class Interval {
  public:
    explicit Interval(Released& released) : released_(released) { released_.take(); }
    ~Interval() { released_.state_ = PyEval_SaveThread(); }
    Interval(const Interval&) = delete;
    Interval& operator=(const Interval&) = delete;

  private:
    Released& released_;
  };

private:
  void take() noexcept;
  PyThreadState* state_;
};

// Takes the GIL in a thread that may or may not hold it.
class Acquired {
public:
  Acquired() noexcept;
  ~Acquired() { PyGILState_Release(state_); }
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

private:
  PyGILState_STATE state_;
};

// Gives a reference up, in any thread: what an object does as it goes may give up the GIL, and ask for it
// again. Where the interpreter is gone, so is the object.
void give_up(PyObject* object) noexcept;

}  // namespace eagle::python
