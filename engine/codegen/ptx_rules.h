// The rules that make PTX give the same bits as every other target: each operation on reals says how it
// rounds, and none is an approximation.
//
// The driver compiles PTX anew, and contracts `mul.f64` and `add.f64` into one `fma` where they do not say
// `.rn` (NVIDIA, "PTX ISA", Floating Point Instructions).
#pragma once

#include <string_view>

#include "engine/base/status.h"

namespace eagle::codegen {

// Looks at every instruction of the text. What is not known to be exact is refused. INTERNAL: line and
// instruction, and what was expected.
Status check_ptx(std::string_view ptx);

}  // namespace eagle::codegen
