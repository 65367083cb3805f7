// What may be relied on of every kernel that the verifier accepts, checked.
#pragma once

#include <string>

#include "engine/kernel/ir.h"
#include "engine/kernel/random_kernel.h"

namespace eagle::kernel {

// Whether the kernel takes microseconds a sample and tables of less than a megabyte: an accepted one may well
// run for hours, or want gigabytes.
bool is_cheap(const Kernel& kernel);

// Message and text lead back to it, and where it is cheap, two samples of it run, within what they may write.
// Says what is not so; empty: all of it is.
std::string usable_problem(const Kernel& kernel, Random& random);

}  // namespace eagle::kernel
