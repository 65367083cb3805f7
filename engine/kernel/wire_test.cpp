#include "engine/kernel/wire.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/text.h"
#include "engine/kernel/verify.h"

namespace eagle::kernel {
namespace {

Kernel read(const char* text) {
  StatusOr<Kernel> kernel = from_text(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return kernel.ok() ? *kernel : Kernel{};
}

TEST(Wire, AMessageReadsBackToTheSameKernel) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = random_kernel(seed);
    v1::Kernel message;
    message.set_name("left over");  // what was there before goes
    to_message(kernel, message);
    const StatusOr<Kernel> again = verify(message);
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(*again, kernel);
    EXPECT_EQ(content_hash(*again), content_hash(kernel));
  }
}

TEST(Wire, BytesReadBackToTheSameKernel) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = random_kernel(seed);
    const StatusOr<Kernel> again = from_bytes(to_bytes(kernel));
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(*again, kernel);
  }
}

TEST(Wire, BytesThatAreNoKernelAreRefused) {
  const std::string bytes = to_bytes(random_kernel(7));
  EXPECT_EQ(from_bytes(bytes.substr(0, bytes.size() - 1)).status().reason(), Reason::bad_message);
  EXPECT_EQ(from_bytes("").status().reason(), Reason::malformed_kernel);
}

TEST(ContentHash, IsSixtyFourHexadecimalDigits) {
  const std::string hash = content_hash(random_kernel(1));
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(ContentHash, DoesNotSeeNamesAndLocations) {
  Kernel kernel = random_kernel(7);
  const std::string before = content_hash(kernel);
  kernel = without_locations(kernel);
  kernel.name = "renamed";
  for (Argument& argument : kernel.arguments) {
    argument.name += "_renamed";
    for (Axis& axis : argument.axes) axis.name += "_renamed";
  }
  EXPECT_EQ(content_hash(kernel), before);
}

TEST(ContentHash, SeesWhateverChangesTheMeaning) {
  const char* programs[] = {
      "kernel @k real=f64 read %0 x: f64 read %1 z: f64 output y: f64 { %2 = sub %0, %1 : f64 yield %2 }",
      "kernel @k real=f64 read %0 x: f64 read %1 z: f64 output y: f64 { %2 = sub %1, %0 : f64 yield %2 }",
      "kernel @k real=f64 read %0 x: f64 read %1 z: f64 output y: f64 { %2 = add %0, %1 : f64 yield %2 }",
      "kernel @k real=f64 read %0 x: f64 read %1 z: f64 output y: f64 { %2 = sub %0, %1 : f64 yield %0 }",
      "kernel @k real=f64 read %0 x: f64 param %1 z: f64 output y: f64 { %2 = sub %0, %1 : f64 yield %2 }",
      "kernel @k real=f64 output y: f64 read %0 x: f64 read %1 z: f64 { %2 = sub %0, %1 : f64 yield %2 }",
      "kernel @k real=f32 read %0 x: f32 read %1 z: f32 output y: f32 { %2 = sub %0, %1 : f32 yield %2 }",
      "kernel @k real=f64 read %0 x: f64[2] read %1 z: f64[2] output y: f64[2] { %2 = sub %0, %1 : f64[2] "
      "yield %2 }",
      "kernel @k real=f64 read %0 x: f64[1,2] read %1 z: f64[1,2] output y: f64[1,2] { %2 = sub %0, %1 : "
      "f64[1,2] yield %2 }",
      "kernel @k real=f64 read %0 x: f64[2,1] read %1 z: f64[2,1] output y: f64[2,1] { %2 = sub %0, %1 : "
      "f64[2,1] yield %2 }",
      "kernel @k real=f64 read %0 x: f64 output y: f64 { %1 = constant 1.0 : f64 yield %1 }",
      "kernel @k real=f64 read %0 x: f64 output y: f64 { %1 = constant 2.0 : f64 yield %1 }",
      "kernel @k real=f64 read %0 x: f64 output y: f64 { %1 = convert %0 : f64 yield %1 }",
      "kernel @k real=f64 read %0 x: f64 output y: f64 { %1 = convert %0 : i64 yield %0 }",
      "kernel @k real=f64 read %0 x: f64 output y: f64 { %1 = convert %0 : i32 yield %0 }",
      // Each differs from one above it in one thing.
      "kernel @k real=f64 read %0 i: i64 table t: i64 output y: i64 { %1 = gather @t[%0] : i64 yield %1 }",
      "kernel @k real=f64 read %0 i: i64 table t[a: 4]: i64 output y: i64 { %1 = gather @t[%0] : i64 yield "
      "%1 }",
      "kernel @k real=f64 read %0 i: i64 table t[a: 5]: i64 output y: i64 { %1 = gather @t[%0] : i64 yield "
      "%1 }",
      "kernel @k real=f64 read %0 i: i64 table t: i64 table u: i64 output y: i64 "
      "{ %1 = gather @t[%0] : i64 yield %1 }",
      "kernel @k real=f64 read %0 i: i64 table t: i64 table u: i64 output y: i64 "
      "{ %1 = gather @u[%0] : i64 yield %1 }",
      "kernel @k real=f64 read %0 x: f64[2] output y: f64 { %1 = extract %0[0] : f64 yield %1 }",
      "kernel @k real=f64 read %0 x: f64[2] output y: f64 { %1 = extract %0[1] : f64 yield %1 }",
      "kernel @k real=f64 read %0 x: f64 output y: f64[2] { %1 = compose %0, %0 : f64[2] yield %1 }",
      "kernel @k real=f64 read %0 x: f64 output y: f64[2,1] { %1 = compose %0, %0 : f64[2,1] yield %1 }",
      "kernel @k real=f64 read %0 c: bool output y: bool "
      "{ %3 = while %0 max 8 -> bool (%1) { yield %1 } do (%2) { yield %0 } yield %3 }",
      "kernel @k real=f64 read %0 c: bool output y: bool "
      "{ %3 = while %0 max 9 -> bool (%1) { yield %1 } do (%2) { yield %0 } yield %3 }",
      "kernel @k real=f64 read %0 c: bool output y: bool "
      "{ %3 = while %0 max 9 -> bool (%1) { yield %1 } do (%2) { yield %2 } yield %3 }",
      "kernel @k real=f64 read %0 i: i64 output y: i64 "
      "{ %1 = switch %0 -> i64 case 0 { yield %0 } case 1 { yield %0 } yield %1 }",
      "kernel @k real=f64 read %0 i: i64 output y: i64 { %1 = switch %0 -> i64 case 0 { yield %0 } yield %1 "
      "}",
      "kernel @k real=f64 read %0 i: i64 output y: i64 "
      "{ %1 = switch %0 dispatch @a auto -> i64 case 0 { yield %0 } yield %1 }",
      "kernel @k real=f64 read %0 i: i64 output y: i64 "
      "{ %1 = switch %0 dispatch @b auto -> i64 case 0 { yield %0 } yield %1 }",
      "kernel @k real=f64 read %0 i: i64 output y: i64 "
      "{ %1 = switch %0 dispatch @a segmented -> i64 case 0 { yield %0 } yield %1 }",
      "kernel @k real=f64 read %0 i: i64 output y: i64 { %1 = sample_index : i64 yield %1 }",
      "kernel @k real=f64 read %0 i: i64 output y: i64 { %1 = step_index : i64 yield %1 }",
  };
  std::set<std::string> hashes;
  for (const char* program : programs) hashes.insert(content_hash(read(program)));
  EXPECT_EQ(hashes.size(), std::size(programs));
}

// Computed apart from this code, with hashlib over the encoding: see wire.cpp. Compiled code on disk is named
// by it, so a change of the encoding needs a new tag.
TEST(ContentHash, IsStable) {
  const Kernel kernel =
      read("kernel @k real=f64 read %0 x: f64 output y: f64 { %1 = add %0, %0 : f64 yield %1 }");
  EXPECT_EQ(content_hash(kernel), "061e60ad75d35234f091ec55074ab7cb4fe59c328372ddab96640114d709c7c1");
}

}  // namespace
}  // namespace eagle::kernel
