#include "server/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/config_file.h"

namespace eagle::server {
namespace {

// The options of a command line; empty when the program would end.
std::optional<ProgramOptions> parsed(std::vector<std::string> words) {
  words.insert(words.begin(), {"eagled", "--listen", "unix:/run/eagled.sock"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  ProgramOptions options;
  int exit_code = 0;
  if (!parse(static_cast<int>(arguments.size()), arguments.data(), options, exit_code)) {
    EXPECT_NE(exit_code, 0);
    return {};
  }
  return options;
}

// What a printed configuration sets, without the comments that say where each setting comes from.
std::string settings_of(const ProgramOptions& options) {
  return std::regex_replace(to_toml(options), std::regex("  # [^\n]*"), "");
}

TEST(Options, ThePlaneBudgetTakesUnits) {
  constexpr std::uint64_t mebi = 1u << 20;
  for (const auto& [text, bytes] :
       std::vector<std::pair<std::string, std::uint64_t>>{{"0", 0},
                                                          {"4096", 4096},
                                                          {"512K", mebi / 2},
                                                          {"3M", 3 * mebi},
                                                          {"3MB", 3 * mebi},
                                                          {"64G", 65'536 * mebi},
                                                          {"64GiB", 65'536 * mebi}}) {
    const auto options = parsed({"--plane-budget", text});
    ASSERT_TRUE(options) << text;
    EXPECT_EQ(options->plane_budget_bytes, bytes) << text;
  }
  EXPECT_EQ(parsed({})->plane_budget_bytes, 0u);
}

TEST(Options, APlaneBudgetThatIsNoSizeIsRefused) {
  for (const char* text : {"-1", "lots", "4X", "1.5G", "99999999999999999999", "99999999999G", ""}) {
    EXPECT_FALSE(parsed({"--plane-budget", text})) << text;
  }
}

TEST(Options, TheCompileTimeoutIsOneSecondToOneHour) {
  EXPECT_EQ(parsed({})->compile_timeout_s, 60);
  EXPECT_EQ(parsed({"--compile-timeout", "7"})->compile_timeout_s, 7);
  for (const char* text : {"0", "-1", "3601", "soon"})
    EXPECT_FALSE(parsed({"--compile-timeout", text})) << text;
}

TEST(Options, APrivateDaemonIsQuieter) {
  EXPECT_EQ(parsed({})->log_level, "info");
  EXPECT_EQ(parsed({"--owner-fd", "3"})->log_level, "warn");
  EXPECT_EQ(parsed({"--owner-fd", "3", "--log-level", "debug"})->log_level, "debug");
}

// ---- the configuration file

// The options of a file's text, over those of a command line that has set `given`.
StatusOr<ProgramOptions> configured(std::string_view text, const std::set<std::string>& given = {}) {
  ProgramOptions options;
  options.threads = 3;
  options.listen = {{"unix:/from/a/flag", {}}};
  const Status status = read_config(
      text, "eagled.toml", [&given](const std::string& flag) { return given.contains(flag); }, options);
  if (!status.ok()) return status;
  return options;
}

TEST(ConfigFile, SaysWhatTheFlagsSay) {
  const auto options = configured(R"(
threads = 8
plane_budget = "2G"
drain_timeout = 5
compile_timeout = 9
cache_dir = ""
log_level = "warn"
insecure_i_know = true
[[listen]]
endpoint = "unix:/run/eagled/eagled.sock"
[[listen]]
endpoint = "dns:0.0.0.0:7411"
identity = "token"
[tls]
certificate = "a.pem"
key = "b.pem"
client_ca = "c.pem"
[tokens]
file = "tokens"
)");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->threads, 8);
  EXPECT_EQ(options->plane_budget_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(options->drain_timeout_s, 5);
  EXPECT_EQ(options->compile_timeout_s, 9);
  EXPECT_EQ(options->log_level, "warn");
  EXPECT_TRUE(options->insecure_i_know);
  ASSERT_EQ(options->listen.size(), 2u);
  EXPECT_EQ(options->listen[0].endpoint, "unix:/run/eagled/eagled.sock");
  EXPECT_EQ(options->listen[1].identity, "token");
  EXPECT_EQ(options->tls.client_ca, "c.pem");
  EXPECT_EQ(options->tokens, "tokens");
}

TEST(ConfigFile, SaysWhatEachTenantMayHave) {
  auto options = configured(R"(
[[tenant]]
principal = "uid:1000"
weight = 2.5
priority = -1
sessions = 3
plane_bytes = "2G"
graphs = 4
jobs = 5
planes = 7
gpu_bytes = "1G"
compile_seconds = 6
device_share = 0.5
[[tenant]]
principal = "*"
sessions = 1
)");
  ASSERT_TRUE(options.ok()) << options.status().message();
  ASSERT_EQ(options->tenants.size(), 2u);
  const TenantPolicy& policy = options->tenants.at("uid:1000");
  EXPECT_EQ(policy.weight, 2.5);
  EXPECT_EQ(policy.priority, -1);
  EXPECT_THAT(policy.quotas,
              ::testing::ElementsAre(3u, std::uint64_t{2} << 30, 4u, 5u, 7u, std::uint64_t{1} << 30));
  EXPECT_EQ(policy.compile_seconds, 6);
  EXPECT_EQ(policy.device_share, 0.5);
  EXPECT_EQ(options->tenants.at("*").weight, 1);
  EXPECT_THAT(options->tenants.at("*").quotas, ::testing::ElementsAre(1u, 0u, 0u, 0u, 0u, 0u));
  options->log_level = "info";
  const auto again = configured(to_toml(*options));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(settings_of(*again), settings_of(*options));
}

TEST(ConfigFile, SaysWhereEachSettingComesFrom) {
  const auto options = configured("threads = 8\ndrain_timeout = 3\n[limits]\njobs = 5\n", {"--threads"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->origins.count("threads"), 0u);
  EXPECT_EQ(options->origins.at("drain_timeout"), "file 'eagled.toml' line 2");
  EXPECT_EQ(options->origins.at("limits.jobs"), "file 'eagled.toml' line 4");
  EXPECT_THAT(to_toml(*options), ::testing::HasSubstr("drain_timeout = 3  # file 'eagled.toml' line 2\n"));
  EXPECT_THAT(to_toml(*options), ::testing::HasSubstr("compile_timeout = 60  # default\n"));
}

TEST(ConfigFile, EveryLimitCanBeSet) {
  std::string text = "[limits]\n";
  const Limits usual;
  for_each_limit(usual, [&](const char* key, const auto&, std::int64_t least, std::int64_t) {
    text += std::string(key) + " = " + std::to_string(least + 1) + "\n";
  });
  const auto options = configured(text);
  ASSERT_TRUE(options.ok()) << options.status().message();
  for_each_limit(options->limits, [](const char* key, const auto& field, std::int64_t least, std::int64_t) {
    EXPECT_EQ(static_cast<std::int64_t>(static_cast<std::uint64_t>(field)), least + 1) << key;
  });
}

TEST(ConfigFile, WhatARunningDaemonDoesNotFollowIsNamed) {
  const auto keys = [](std::string_view before, std::string_view after) {
    return need_a_restart(*configured(before), *configured(after));
  };
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  EXPECT_THAT(keys("threads = 1", "threads = 1"), IsEmpty());
  EXPECT_THAT(keys("log_level = \"info\"", "log_level = \"warn\"\nadmins = [\"uid:7\"]"), IsEmpty());
  EXPECT_THAT(keys("[limits]\njobs = 1", "[limits]\njobs = 2"), IsEmpty());
  EXPECT_THAT(keys("", "[[tenant]]\nprincipal = \"*\"\nweight = 3"), IsEmpty());
  EXPECT_THAT(keys("threads = 1", "threads = 2"), ElementsAre("threads"));
  EXPECT_THAT(keys("[limits]\nstreams = 9", ""), ElementsAre("limits.streams"));
  EXPECT_THAT(keys("", "[tls]\ncertificate = \"a\"\nkey = \"b\""), ElementsAre("tls.certificate", "tls.key"));
  EXPECT_THAT(keys("", "[[listen]]\nendpoint = \"unix:/other\""), ElementsAre("listen"));
}

TEST(Options, AdminsAreRootAndTheDaemonsOwnUserUnlessOthersAreNamed) {
  EXPECT_EQ(admins_of(ProgramOptions()).front(), "uid:0");
  EXPECT_THAT(admins_of(*parsed({"--admins", "uid:7,token:ops"})),
              ::testing::ElementsAre("uid:7", "token:ops"));
}

TEST(ConfigFile, FlagsWinOverIt) {
  const auto options =
      configured("threads = 8\n[[listen]]\nendpoint = \"unix:/s\"\n", {"--threads", "--listen"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->threads, 3);
  EXPECT_EQ(options->listen[0].endpoint, "unix:/from/a/flag");
}

TEST(ConfigFile, WhatItPrintsItReads) {
  ProgramOptions options = *configured(
      "threads = 8\n[[listen]]\nendpoint = \"dns:localhost:7411\"\nidentity = "
      "\"certificate\"\n[tls]\ncertificate = \"a\"\nkey = \"b\"\n");
  options.log_level = "info";
  const auto again = configured(to_toml(options));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(settings_of(*again), settings_of(options));
}

TEST(ConfigFile, AMistakeIsNamedWithItsLineAndTheNearestKey) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> mistakes = {
      {"\nthreds = 8", {"line 2", "threds", "'threads'"}},
      {"[tls]\ncertficate = \"a\"", {"line 2", "[tls]", "'certificate'"}},
      {"[[listen]]\nendpoint = \"unix:/s\"\nidentiy = \"uid\"", {"line 3", "'identity'"}},
      {"[[listen]]\nidentity = \"uid\"", {"endpoint", "missing"}},
      {"[[listen]]\nendpoint = \"unix:/s\"\nidentity = \"gid\"", {"identity", "\"certificate\"", "gid"}},
      {"[listen]\nendpoint = \"unix:/s\"", {"[[listen]]"}},
      {"threads = \"many\"", {"threads", "whole number"}},
      {"threads = 8.5", {"threads"}},
      {"threads = -1", {"threads", "-1"}},
      {"threads = 99999999999999999999", {"line 1"}},
      {"plane_budget = \"lots\"", {"plane_budget", "512M"}},
      {"plane_budget = -1", {"plane_budget"}},
      {"log_level = \"loud\"", {"log_level", "\"debug\"", "loud"}},
      {"insecure_i_know = 1", {"insecure_i_know", "true or false"}},
      {"tls = 3", {"[tls]"}},
      {"[[tenant]]\nweight = 2", {"principal", "uid:N"}},
      {"[[tenant]]\nprincipal = \"everybody\"", {"principal", "uid:N"}},
      {"[[tenant]]\nprincipal = \"*\"\n[[tenant]]\nprincipal = \"*\"", {"[[tenant]] 2", "already"}},
      {"[[tenant]]\nprincipal = \"*\"\nweight = 0", {"weight", "above 0"}},
      {"[[tenant]]\nprincipal = \"*\"\nweight = nan", {"weight"}},
      {"[[tenant]]\nprincipal = \"*\"\ndevice_share = 1.5", {"device_share"}},
      {"[[tenant]]\nprincipal = \"*\"\njobs = -1", {"jobs"}},
      {"[[tenant]]\nprincipal = \"*\"\nsesions = 1", {"'sessions'"}},
      {"[limits]\njobs = 0", {"line 2", "[limits] jobs", "from 1 to"}},
      {"[limits]\njob = 3", {"'jobs'"}},
      {"admins = [\"*\"]", {"admins", "uid:N"}},
      {"admins = [7]", {"admins", "principals"}},
      {"admins = \"uid:0\"", {"admins", "principals"}},
      {"log_format = \"xml\"", {"log_format", "\"json\""}},
      {"threads = 1\nthreads = 2", {"line 2"}},
      {"[tls", {"line 1"}},
      {"\"\\u0000\" = 1", {"no such key"}},
  };
  for (const auto& [text, words] : mistakes) {
    const Status status = configured(text).status();
    EXPECT_EQ(status.reason(), Reason::bad_value) << text;
    for (const std::string& word : words) EXPECT_THAT(status.message(), ::testing::HasSubstr(word)) << text;
  }
  EXPECT_EQ(configured(std::string((1 << 20) + 1, '#')).status().reason(), Reason::bad_value);
}

TEST(Options, OneUnixSocketAndAnyNumberOfTcpAddresses) {
  const auto options = parsed({"--listen", "dns:localhost:1", "--listen", "dns:localhost:2"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->listen.size(), 3u);
  EXPECT_EQ(options->unix_endpoint(), "unix:/run/eagled.sock");
  EXPECT_FALSE(parsed({"--listen", "unix:/another"}));
}

TEST(Options, TheEnvironmentSpeaksWhereTheCommandLineDoesNot) {
  ::setenv("EAGLED_COMPILE_TIMEOUT", "77", 1);
  EXPECT_EQ(parsed({})->compile_timeout_s, 77);
  EXPECT_EQ(parsed({"--compile-timeout", "5"})->compile_timeout_s, 5);
  ::unsetenv("EAGLED_COMPILE_TIMEOUT");
}

TEST(Options, AVariableThatNothingReadsIsRefusedWithTheNearest) {
  const char* const good[] = {"HOME=/", "EAGLED_DRAIN_TIMEOUT=3", "EAGLED_CPU_TARGET=native", nullptr};
  EXPECT_TRUE(check_environment(good).ok());
  const char* const bad[] = {"EAGLED_DRAIN_TIMOUT=3", nullptr};
  const Status status = check_environment(bad);
  EXPECT_EQ(status.reason(), Reason::bad_value);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("EAGLED_DRAIN_TIMOUT"));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("nearest is EAGLED_DRAIN_TIMEOUT"));
}

}  // namespace
}  // namespace eagle::server
