// The machine itself: small kernels by hand, whose results PTX ISA gives.
#include "tests/fake_cuda/ptx_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>

namespace eagle::fake_cuda {
namespace {

using testing::HasSubstr;

constexpr const char* head = ".version 7.0\n.target sm_80\n.address_size 64\n";

// Runs `body`, which finds the address of eight words in %out.
class PtxMachine : public testing::Test {
protected:
  PtxOutcome run(const std::string& body, std::uint32_t threads = 1) {
    const std::string text = std::string(head) +
                             ".visible .entry f(.param .align 8 .b8 p[8])\n{\n\t.reg .b64 %out;\n"
                             "\tld.param.u64 %out, [p];\n" +
                             body + "\tret;\n}\n";
    auto program = parse_ptx(text);
    EXPECT_TRUE(program.ok()) << program.status().to_string();
    if (!program.ok()) return {};
    const auto address = reinterpret_cast<std::uint64_t>(words_.data());
    std::memcpy(parameters_.data(), &address, 8);
    const MemoryRange range{address, address + sizeof words_};
    PtxLaunch launch;
    launch.program = &*program;
    launch.entry = program->entry("f");
    launch.parameters = parameters_;
    launch.threads = threads;
    launch.memory = std::span(&range, 1);
    launch.most_instructions = 100'000;
    return run_ptx(launch);
  }
  alignas(16) std::array<std::uint64_t, 8> words_{};
  std::array<std::byte, 8> parameters_{};
};

TEST_F(PtxMachine, ConvertsAsTheManualSays) {
  ASSERT_EQ(run(R"(
	mov.f64 %fd1, 0dC008000000000000;
	cvt.rzi.s64.f64 %rd1, %fd1;
	st.global.u64 [%out], %rd1;
	mov.f64 %fd2, 0d7FF8000000000000;
	cvt.rzi.s64.f64 %rd1, %fd2;
	st.global.u64 [%out+8], %rd1;
	mov.f64 %fd2, 0d43F0000000000000;
	cvt.rzi.s64.f64 %rd1, %fd2;
	st.global.u64 [%out+16], %rd1;
	mov.f64 %fd2, 0d4004000000000000;
	cvt.rni.f64.f64 %fd3, %fd2;
	st.global.f64 [%out+24], %fd3;
	mov.u64 %rd2, -1;
	cvt.s64.s32 %rd3, %rd2;
	st.global.u64 [%out+32], %rd3;
	cvt.u64.u32 %rd3, %rd2;
	st.global.u64 [%out+40], %rd3;
)")
                .fault,
            PtxFault::none);
  EXPECT_EQ(static_cast<std::int64_t>(words_[0]), -3);
  EXPECT_EQ(words_[1], std::uint64_t{1} << 63);      // not a number
  EXPECT_EQ(words_[2], ~std::uint64_t{0} >> 1);      // 2^64 saturates
  EXPECT_EQ(std::bit_cast<double>(words_[3]), 2.0);  // 2.5, half to even
  EXPECT_EQ(words_[4], ~std::uint64_t{0});
  EXPECT_EQ(words_[5], 0xffffffffu);
}

TEST_F(PtxMachine, ComparesNotANumberAsTheManualSays) {
  ASSERT_EQ(run(R"(
	mov.f64 %fd1, 0d7FF8000000000000;
	mov.f64 %fd2, 0d3FF0000000000000;
	setp.ne.f64 %p1, %fd1, %fd2;
	selp.u64 %rd1, 1, 0, %p1;
	st.global.u64 [%out], %rd1;
	setp.neu.f64 %p1, %fd1, %fd2;
	selp.u64 %rd1, 1, 0, %p1;
	st.global.u64 [%out+8], %rd1;
	setp.nan.f64 %p1, %fd1, %fd1;
	selp.u64 %rd1, 1, 0, %p1;
	st.global.u64 [%out+16], %rd1;
	add.rn.f64 %fd3, %fd1, %fd2;
	st.global.f64 [%out+24], %fd3;
)")
                .fault,
            PtxFault::none);
  EXPECT_EQ(words_[0], 0u);
  EXPECT_EQ(words_[1], 1u);
  EXPECT_EQ(words_[2], 1u);
  EXPECT_EQ(words_[3], 0x7fffffffffffffffu);  // a device's own NaN
}

TEST_F(PtxMachine, ThreadsAddUpWhateverTheirOrder) {
  ASSERT_EQ(run(R"(
	mov.u32 %r1, %tid.x;
	cvt.u64.u32 %rd1, %r1;
	atom.global.add.u64 %rd2, [%out], %rd1;
	atom.global.max.s64 %rd2, [%out+8], %rd1;
)",
                100)
                .fault,
            PtxFault::none);
  EXPECT_EQ(words_[0], 4950u);
  EXPECT_EQ(words_[1], 99u);
}

TEST_F(PtxMachine, FaultsWhereADeviceWould) {
  EXPECT_EQ(run("\tst.global.u64 [%out+1024], 1;\n").fault, PtxFault::illegal_address);
  EXPECT_EQ(run("\tmov.u64 %rd1, 8;\n\tld.global.u64 %rd2, [%rd1];\n").fault, PtxFault::illegal_address);
  EXPECT_EQ(run("\tld.global.u64 %rd2, [%out+4];\n").fault, PtxFault::misaligned_address);
  EXPECT_EQ(run("$L_0:\n\tbra.uni $L_0;\n").fault, PtxFault::out_of_time);
}

TEST(PtxProgram, RefusesWhatItDoesNotKnow) {
  const auto refused = [](const std::string& body) {
    return parse_ptx(std::string(head) + ".visible .entry f()\n{\n" + body + "\n\tret;\n}\n")
        .status()
        .message();
  };
  EXPECT_THAT(refused("\tsin.approx.f32 %f1, %f2;"), HasSubstr("line 6: an unknown instruction"));
  EXPECT_THAT(refused("\tbra $nowhere;"), HasSubstr("no label"));
  EXPECT_THAT(refused("\tcall.uni nobody, ();"), HasSubstr("'nobody'"));
  EXPECT_THAT(parse_ptx("hello").status().message(), HasSubstr("unexpected end"));
}

}  // namespace
}  // namespace eagle::fake_cuda
