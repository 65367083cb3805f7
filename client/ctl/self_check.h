// Whether this host gives the bits that are promised: a few kernels with everything in them, on every target
// of its CPU and on each of its GPUs, against the interpreter, and that against what every host gives.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace eagle::ctl {

struct Check {
  std::string name;    // "interpreter", "kernels", "graphs", "sums"
  std::string target;  // "native", "x86-64-v3"; "cuda:0, NVIDIA H200"; "2 threads"
  bool passed = false;
  std::string detail;  // what was compared, or where it differs
};

// What the interpreter and the sums give on every host: SHA-256, hexadecimal. They change with the language
// only (engine/kernel/random_kernel.cpp makes the kernels).
struct Golden {
  std::string kernels;
  std::string sums;
};
const Golden& golden();

// `told` hears of each check when it is over. An error where nothing could be checked: the compile helper is
// missing, say.
Status self_check(const Golden& expected, const std::function<void(const Check&)>& told);

}  // namespace eagle::ctl
