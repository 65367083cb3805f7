#include "engine/codegen/ptx_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "engine/codegen/device_arch.h"

namespace eagle::codegen {
namespace {

using testing::HasSubstr;

TEST(PtxRules, AcceptWhatSaysHowItRounds) {
  EXPECT_TRUE(check_ptx(R"(
.version 7.0
.visible .entry f(.param .align 8 .b8 p[96]) {
	.reg .f64 	%fd<9>;
	@%p1 bra 	$L__BB0_2;
	add.rn.f64 	%fd1, %fd2, %fd3;  // add.f64 would be contracted
	fma.rn.f32 	%f1, %f2, %f3, %f4; div.rn.f64 %fd1, %fd2, %fd3;
	sqrt.rn.f64 	%fd1, %fd2;
	cvt.rzi.s64.f64 	%rd1, %fd1;
	cvt.rni.f64.f64 	%fd1, %fd2;
	cvt.rn.f32.f64 	%f1, %fd2;
	cvt.f64.f32 	%fd1, %f2;
	setp.lt.f64 	%p1, %fd1, %fd2;
	neg.f64 	%fd1, %fd2;
	mul.lo.s64 	%rd1, %rd2, 3;
$L__BB0_2:
	ret;
})")
                  .ok());
}

class PtxRulesRefuse : public testing::TestWithParam<const char*> {};

TEST_P(PtxRulesRefuse, AnInstruction) {
  const std::string line = GetParam();
  const Status status = check_ptx("\tadd.rn.f64 %fd1, %fd2, %fd3;\n\t" + line + "\n");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.reason(), Reason::internal);
  EXPECT_THAT(status.message(), HasSubstr("line 2"));
}

INSTANTIATE_TEST_SUITE_P(All, PtxRulesRefuse,
                         testing::Values("mul.f64 %fd1, %fd2, %fd3;", "add.f32 %f1, %f2, %f3;",
                                         "sub.f64 %fd1, %fd2, %fd3;", "@%p1 add.f64 %fd1, %fd2, %fd3;",
                                         "add.rz.f64 %fd1, %fd2, %fd3;", "add.rn.ftz.f32 %f1, %f2, %f3;",
                                         "div.full.f32 %f1, %f2, %f3;", "div.approx.f32 %f1, %f2, %f3;",
                                         "rcp.approx.ftz.f64 %fd1, %fd2;", "sqrt.approx.f32 %f1, %f2;",
                                         "sin.approx.f32 %f1, %f2;", "ex2.f32 %f1, %f2;",
                                         "mad.rn.f32 %f1, %f2, %f3, %f4;", "min.f64 %fd1, %fd2, %fd3;",
                                         "cvt.f32.f64 %f1, %fd2;", "cvt.f64.s64 %fd1, %rd2;",
                                         "atom.global.add.f64 %fd1, [%rd1], %fd2;",
                                         "mov.b64 %a, %b; mul.f32 %f1, %f2, %f3;"),
                         [](const auto& instance) { return "Number" + std::to_string(instance.index); });

TEST(DeviceArch, IsTheNewestThatTheDeviceRuns) {
  EXPECT_EQ(device_arch_for(7, 5)->name, "sm_75");
  EXPECT_EQ(device_arch_for(8, 8)->name, "sm_87");
  EXPECT_EQ(device_arch_for(9, 0)->name, "sm_90");
  EXPECT_EQ(device_arch_for(12, 0)->name, "sm_90");
  EXPECT_EQ(device_arch_for(7, 0).status().reason(), Reason::bad_value);
  EXPECT_EQ(find_device_arch(default_device_arch)->capability, 75);
  EXPECT_THAT(find_device_arch("sm_70").status().message(), HasSubstr("sm_75, sm_80"));
}

}  // namespace
}  // namespace eagle::codegen
