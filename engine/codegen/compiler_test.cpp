// The compiler and its helper process: cached, replaced when it dies, safe to share, and apart from LLVM.
#include "engine/codegen/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/kernel/builder.h"

namespace eagle::codegen {
namespace {

using kernel::Kernel;
using kernel::KernelBuilder;
using testing::HasSubstr;
using testing::Not;

// y = a*x + b, with a constant that makes its hash its own.
Kernel affine(double offset) {
  KernelBuilder b("affine");
  const auto x = b.scalar("x");
  const auto a = b.param("a");
  b.output("y", b.add(b.mul(a, x), b.real(offset)));
  StatusOr<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return *std::move(kernel);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Process ids of our children that run eagle-compile.
std::vector<pid_t> helpers() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = read_file(entry.path() / "stat");
    const std::size_t after_name = stat.rfind(')');
    if (after_name == std::string::npos || stat.find("(eagle-compile)") == std::string::npos) continue;
    std::istringstream fields(stat.substr(after_name + 2));
    char state = 0;
    pid_t parent = 0;
    fields >> state >> parent;
    if (parent == ::getpid() && state != 'Z') found.push_back(std::stoi(name));
  }
  return found;
}

TEST(Compiler, RunsWhatItCompiled) {
  Compiler compiler;
  const auto compiled = compiler.compile(affine(1.0), {});
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  std::vector<double> x = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<double> y(8);
  std::byte* planes[] = {reinterpret_cast<std::byte*>(x.data()), nullptr,
                         reinterpret_cast<std::byte*>(y.data())};
  const std::int64_t strides[3] = {};
  const std::uint64_t params[3] = {0, 0x4000000000000000, 0};  // a = 2.0
  KernelCall call{.planes = planes, .component_strides = strides, .params = params, .begin = 0, .end = 8};
  compiled->code->function()(&call);
  EXPECT_THAT(y, testing::ElementsAre(1, 3, 5, 7, 9, 11, 13, 15));  // docs/design: acceptance kernel "affine"
  EXPECT_EQ(call.steps, 1);
  EXPECT_EQ(call.finished, 0);
}

TEST(Compiler, RemembersByContentNotByName) {
  Compiler compiler;
  Kernel kernel = affine(2.0);
  ASSERT_TRUE(compiler.compile(kernel, {}).ok());
  kernel.name = "another";
  kernel.arguments[0].name = "input";
  const auto again = compiler.compile(kernel, {});
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->hit);
  EXPECT_FALSE(compiler.compile(affine(3.0), {})->hit);
  EXPECT_EQ(compiler.counters().hits, 1u);
  EXPECT_EQ(compiler.counters().misses, 2u);
}

TEST(Compiler, DropsTheLeastRecentlyUsedWhenItsBytesAreSpent) {
  Compiler::Options options;
  options.cache_bytes = 1;  // less than one image: the newest alone is kept
  Compiler compiler(options);
  const auto first = compiler.compile(affine(1.0), {});
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(compiler.compile(affine(2.0), {}).ok());
  EXPECT_EQ(compiler.counters().cached, 1u);
  EXPECT_FALSE(compiler.compile(affine(1.0), {})->hit);
  // Code that is still held works after it left the cache.
  KernelCall nothing;
  std::byte* planes[3] = {};
  const std::int64_t strides[3] = {};
  const std::uint64_t params[3] = {};
  nothing.planes = planes;
  nothing.component_strides = strides;
  nothing.params = params;
  first->code->function()(&nothing);
  EXPECT_EQ(nothing.steps, 0);
}

TEST(Compiler, CompilesOnceForThreadsThatAskTogether) {
  Compiler compiler;
  const Kernel kernel = affine(7.0);
  std::vector<std::thread> threads;
  std::vector<const Code*> codes(8);
  std::vector<std::shared_ptr<const Code>> keep(8);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto compiled = compiler.compile(kernel, {});
      if (compiled.ok()) keep[i] = compiled->code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& code : keep) EXPECT_EQ(code, keep[0]);
  EXPECT_NE(keep[0], nullptr);
  EXPECT_EQ(compiler.counters().misses, 1u);
}

TEST(Compiler, KeepsLlvmOutOfThisProcessAndCodeUnwritable) {
  Compiler compiler;
  const auto compiled = compiler.compile(affine(4.0), {});
  ASSERT_TRUE(compiled.ok());
  const std::string maps = read_file("/proc/self/maps");
  EXPECT_THAT(maps, Not(HasSubstr("LLVM")));
  std::istringstream lines(maps);
  std::string line;
  int mappings = 0;
  while (std::getline(lines, line)) {
    if (line.find("eagle-code") == std::string::npos) continue;
    ++mappings;
    EXPECT_THAT(line, HasSubstr(" r-xp "));
  }
  EXPECT_EQ(mappings, 1);
}

// What a hostile kernel could reach if it took the helper over: no new privileges, no call outside the
// filter.
TEST(Compiler, RunsItsHelperConfined) {
  Compiler compiler;
  ASSERT_TRUE(compiler.compile(affine(5.0), {}).ok());
  const std::vector<pid_t> running = helpers();
  ASSERT_EQ(running.size(), 1u);
  const std::string proc = "/proc/" + std::to_string(running[0]);
  EXPECT_THAT(read_file(proc + "/status"), HasSubstr("NoNewPrivs:\t1"));
  const std::string limits = read_file(proc + "/limits");
  EXPECT_THAT(limits, testing::ContainsRegex("Max core file size +0 "));
  EXPECT_THAT(limits, testing::ContainsRegex("Max cpu time +36[0-9][0-9] "));  // an hour for this request
#ifdef EAGLE_SANITIZED
  GTEST_SKIP() << "a sanitized helper runs without the system-call filter";
#endif
  EXPECT_THAT(read_file(proc + "/status"), HasSubstr("Seccomp:\t2"));  // a filter is loaded
  // The standard ones, the socket, and perhaps the image that was just sent.
  for (const auto& fd : std::filesystem::directory_iterator(proc + "/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(fd.path(), gone);
    if (gone || target.find("eagle-code") != std::string::npos) continue;
    EXPECT_LE(std::stoi(fd.path().filename()), 3) << target;
  }
}

// A chain of divisions over 64 components: much work for a compiler.
Kernel heavy(int lines) {
  KernelBuilder b("heavy");
  const auto y = b.vector("y", 64);
  auto x = b.state("x", y.type);
  for (int i = 0; i < lines; ++i) x = b.add(b.mul(x, y), b.div(y, b.sub(y, x)));
  b.commit("x", x);
  StatusOr<Kernel> kernel = b.finish();
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  return *std::move(kernel);
}

TEST(Compiler, ASlowKernelDelaysNoQuickOne) {
  Compiler::Options options;
  options.timeout = std::chrono::minutes(5);
  Compiler compiler(options);
  ASSERT_TRUE(compiler.compile(affine(20.0), {}).ok());
  const std::vector<pid_t> quick = helpers();
  ASSERT_EQ(quick.size(), 1u);
  std::thread slow([&] { EXPECT_TRUE(compiler.compile(heavy(10), {}).ok()); });
  std::vector<pid_t> both = helpers();
  while (both.size() < 2) both = helpers();
  const pid_t slow_helper = both[0] == quick[0] ? both[1] : both[0];
  ::kill(slow_helper, SIGSTOP);  // as slow as can be
  EXPECT_TRUE(compiler.compile(affine(21.0), {}).ok());
  ::kill(slow_helper, SIGCONT);
  slow.join();
}

TEST(Compiler, ReplacesAHelperThatWasKilled) {
  Compiler compiler;
  ASSERT_TRUE(compiler.compile(affine(10.0), {}).ok());
  const std::vector<pid_t> running = helpers();
  ASSERT_EQ(running.size(), 1u);
  ::kill(running[0], SIGKILL);
  // Either the death is seen before the request goes out, or the request fails and names it; the one
  // after that works in any case.
  const auto next = compiler.compile(affine(11.0), {});
  if (!next.ok()) {
    EXPECT_EQ(next.status().reason(), Reason::compile_failed);
    EXPECT_THAT(next.status().message(), HasSubstr("Killed"));
  }
  EXPECT_TRUE(compiler.compile(affine(11.0), {}).ok());
  EXPECT_EQ(helpers().size(), 1u);
}

TEST(Compiler, StopsACompileThatTakesTooLong) {
  Compiler::Options options;
  options.timeout = std::chrono::milliseconds(1);  // less than the helper needs to start
  Compiler compiler(options);
  const auto compiled = compiler.compile(affine(1.0), {});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().reason(), Reason::compile_failed);
  EXPECT_THAT(compiled.status().message(), HasSubstr("took longer than"));
  EXPECT_TRUE(helpers().empty());
}

TEST(Compiler, SaysWhichHelperIsMissing) {
  Compiler::Options options;
  options.helper = "/nonexistent/eagle-compile";
  const auto compiled = Compiler(options).compile(affine(1.0), {});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().reason(), Reason::compile_failed);
  EXPECT_THAT(compiled.status().message(), HasSubstr("/nonexistent/eagle-compile"));
  EXPECT_THAT(compiled.status().message(), HasSubstr("EAGLE_COMPILE_HELPER"));
}

TEST(Compiler, RefusesAProgramThatIsNoHelper) {
  Compiler::Options options;
  options.helper = "/bin/true";
  const auto compiled = Compiler(options).compile(affine(1.0), {});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().reason(), Reason::compile_failed);
  EXPECT_THAT(compiled.status().message(), HasSubstr("while it compiled"));
}

TEST(Compiler, RefusesACpuThatLlvmDoesNotKnow) {
  Compiler compiler;
  const auto compiled = compiler.compile(affine(1.0), {"pentium-of-the-year"});
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.status().message(), HasSubstr("pentium-of-the-year"));
  EXPECT_TRUE(compiler.compile(affine(1.0), {}).ok());  // and the helper serves on
}

TEST(Compiler, ListsWhatItEmits) {
  Compiler compiler;
  const auto llvm = compiler.listing(affine(1.0), {}, "llvm");
  ASSERT_TRUE(llvm.ok()) << llvm.status().to_string();
  EXPECT_THAT(*llvm, HasSubstr("fmul"));
  EXPECT_THAT(*llvm, Not(HasSubstr("fmuladd")));  // contraction is off
  EXPECT_TRUE(compiler.listing(affine(1.0), {}, "assembly").ok());
  EXPECT_EQ(compiler.listing(affine(1.0), {}, "poem").status().reason(), Reason::bad_value);
}

class DefaultTarget : public testing::Test {
protected:
  void TearDown() override {
    ::unsetenv("EAGLED_CPU_TARGET");
    ::unsetenv("EAGLED_INTERLEAVE");
  }
};

TEST_F(DefaultTarget, IsThisMachineUnlessForced) {
  ::unsetenv("EAGLED_CPU_TARGET");
  EXPECT_EQ(default_target()->cpu, "");
  ::setenv("EAGLED_CPU_TARGET", "x86-64", 1);
  EXPECT_EQ(default_target()->cpu, "x86-64");
}

TEST_F(DefaultTarget, TakesTheInterleavingThatItIsTold) {
  ::setenv("EAGLED_INTERLEAVE", "2", 1);
  const auto target = default_target();
  ASSERT_TRUE(target.ok()) << target.status().to_string();
  EXPECT_EQ(target->copies, 2);
  Compiler compiler;
  const auto two = compiler.compile(affine(1.0), *target);
  const auto four = compiler.compile(affine(1.0), Target{"", 4});
  ASSERT_TRUE(two.ok() && four.ok());
  EXPECT_EQ(2 * two->code->lanes(), four->code->lanes());  // and neither was taken for the other
  ::setenv("EAGLED_INTERLEAVE", "3", 1);
  EXPECT_THAT(default_target().status().message(), HasSubstr("EAGLED_INTERLEAVE=3 is none of 1, 2 and 4"));
}

TEST_F(DefaultTarget, RefusesAnUnknownNameAndSaysWhatThereIs) {
  ::setenv("EAGLED_CPU_TARGET", "x86-65", 1);
  const auto target = default_target();
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.status().reason(), Reason::bad_value);
  EXPECT_THAT(target.status().message(), HasSubstr("x86-65"));
  EXPECT_THAT(target.status().message(), HasSubstr("x86-64-v3"));
}

}  // namespace
}  // namespace eagle::codegen
