// record, replay: a session's requests as a file, and making them again.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>

#include "client/ctl/command.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/host.h"
#include "client/record/format.h"
#include "client/record/replay.h"
#include "engine/view/width.h"

namespace eagle::ctl {
namespace {

using record::Replayed;

struct RecordOptions {
  std::string file;
  bool contents = false;
  std::uint64_t most_bytes = std::uint64_t{4} << 30;
  std::vector<std::string> program;
};

// The recordings of an earlier time under this name. BAD_VALUE where it is something else.
Status remove_earlier(const std::string& path) {
  for (int number = 1; number <= record::most_numbered; ++number) {
    const std::string name = record::numbered(path, number);
    if (::access(name.c_str(), F_OK) != 0) break;
    const Status known = record::File::open(name).status();
    if (!known.ok() && number > 1) break;
    EAGLE_RETURN_IF_ERROR(known);
    if (::unlink(name.c_str()) != 0)
      return {Reason::bad_value, "record: '" + name + "' cannot be replaced: " + std::strerror(errno)};
  }
  return {};
}

// Becomes the program, whose exit status is then this one's.
StatusOr<Exit> record_program(const Options& options, const RecordOptions& asked) {
  EAGLE_RETURN_IF_ERROR(remove_earlier(asked.file));
  ::setenv("EAGLE_RECORD", asked.file.c_str(), 1);
  ::setenv("EAGLE_RECORD_CONTENTS", asked.contents ? "1" : "0", 1);
  ::setenv("EAGLE_RECORD_BYTES", std::to_string(asked.most_bytes).c_str(), 1);
  if (!options.endpoint.empty()) ::setenv("EAGLE_ENDPOINT", options.endpoint.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : asked.program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::cout.flush();
  ::execvp(words[0], words.data());
  return Status(Reason::bad_value,
                "record: '" + asked.program.front() + "' cannot be started: " + std::strerror(errno));
}

struct ReplayOptions {
  std::string file;
  bool info = false;
  bool verify = false;
  bool in_process = false;
  bool on_host = false;
  bool all = false;
  int threads = 0;
  int rounds = 1;
  std::uint64_t most_bytes = 0;
};

Json to_json(const record::Summary& contents) {
  return {{"client", contents.client},
          {"client_version", contents.client_version},
          {"host_version", contents.host_version},
          {"endpoint", contents.endpoint},
          {"transport", contents.transport},
          {"cpu", contents.cpu},
          {"threads", contents.threads},
          {"with_contents", contents.with_contents},
          {"cut_short", contents.cut_short},
          {"end", contents.end},
          {"seconds", contents.seconds},
          {"planes", contents.planes},
          {"plane_bytes", contents.plane_bytes},
          {"gpu_planes", contents.gpu_planes},
          {"gpu_bytes", contents.gpu_bytes},
          {"requests", contents.requests},
          {"launches", contents.launches},
          {"failed", contents.failed}};
}

std::string to_text(const record::Summary& contents) {
  return list_text(
      {{"recorded by", contents.client + " (eagle " + contents.client_version + ")"},
       {"of", contents.endpoint + ", " + contents.transport + ", eagle " + contents.host_version},
       {"computed on", plural(static_cast<std::uint64_t>(contents.threads), "thread") + ", " + contents.cpu},
       {"over", seconds_text(contents.seconds)},
       {"planes", count_text(contents.planes) + ", " + bytes_text(contents.plane_bytes) +
                      (contents.gpu_planes == 0 ? ""
                                                : " (" + count_text(contents.gpu_planes) + ", " +
                                                      bytes_text(contents.gpu_bytes) + ", on a GPU)") +
                      (contents.with_contents ? ", with what they held" : ", without what they held")},
       {"requests", count_text(contents.requests) + ", " + count_text(contents.launches) +
                        " of them launches, " + count_text(contents.failed) + " failed"},
       {"end", !contents.end.empty() ? contents.end
               : contents.cut_short  ? "cut short: its process ended first, or it still runs"
                                     : "the session was closed"}});
}

std::string_view name_of(Replayed::Bits bits) {
  switch (bits) {
    case Replayed::Bits::equal:
      return "equal";
    case Replayed::Bits::different:
      return "different";
    case Replayed::Bits::not_compared:
      break;
  }
  return "not compared";
}

std::string outcome_text(const std::string& reason) { return reason.empty() ? "ok" : reason; }

std::string verdict_of(const Replayed& one) {
  if (!one.finished) return "its process ended in it";
  if (!one.comparable) return "its caller had cancelled it";
  if (one.recorded_reason != one.reason) return "DIFFERENT OUTCOME";
  if (!one.counted.empty()) return one.counted;
  if (one.bits == Replayed::Bits::different) return "DIFFERENT BITS";
  return "same";
}

Json to_json(const Replayed& one) {
  return {{"number", one.number},
          {"kind", one.kind},
          {"graph", one.graph},
          {"recorded",
           {{"reason", one.recorded_reason}, {"message", one.recorded_message}, {"wall_s", one.recorded_s}}},
          {"replayed", {{"reason", one.reason}, {"message", one.message}, {"wall_s", one.wall_s}}},
          {"finished", one.finished},
          {"comparable", one.comparable},
          {"counted", one.counted},
          {"bits", name_of(one.bits)},
          {"different_planes", one.different_planes},
          {"same", one.same()}};
}

// All rounds of one request.
struct Times {
  Replayed first;
  std::vector<double> seconds;
  bool same = true;
};

std::string times_text(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  if (seconds.size() == 1) return seconds_text(seconds.front());
  return seconds_text(seconds.front()) + " / " + seconds_text(seconds[seconds.size() / 2]);
}

StatusOr<Session> session_for(const Options& options, const ReplayOptions& asked) {
  if (!asked.in_process) return connect(options);
  LocalOptions local_options;
  local_options.threads = asked.threads;
  return local(local_options);
}

std::uint64_t half_of_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
}

StatusOr<Exit> replay(const Options& options, const ReplayOptions& asked) {
  ::unsetenv("EAGLE_RECORD");  // a replay is not recorded
  EAGLE_ASSIGN_OR_RETURN(const record::File file, record::File::open(asked.file));
  EAGLE_ASSIGN_OR_RETURN(const record::Summary contents, record::summary_of(file));
  if (asked.info) {
    if (options.json) {
      print_json(to_json(contents));
    } else {
      std::cout << to_text(contents);
    }
    return Exit::well;
  }
  record::ReplayOptions how;
  how.verify = asked.verify;
  how.on_host = asked.on_host;
  std::map<std::string, std::string> elsewhere;  // why, by GPU
  how.elsewhere = [&](const std::string& device, const Status& why) { elsewhere[device] = why.message(); };
  how.limits.plane_bytes = asked.most_bytes > 0 ? asked.most_bytes : half_of_memory();
  if (contents.plane_bytes > how.limits.plane_bytes) {
    return Status(Reason::quota, "replay: its planes have " + bytes_text(contents.plane_bytes) + ", and " +
                                     bytes_text(how.limits.plane_bytes) + " are allowed (--most-bytes)");
  }
  std::map<std::uint64_t, Times> all;
  for (int round = 0; round < asked.rounds; ++round) {
    // Fresh each time: nothing is left of the round before.
    EAGLE_ASSIGN_OR_RETURN(const Session session, session_for(options, asked));
    EAGLE_RETURN_IF_ERROR(record::replay(*session.host(), file, how, [&](const Replayed& one) {
      Times& times = all[one.number];
      if (times.seconds.empty() || (times.same && !one.same())) times.first = one;
      times.seconds.push_back(one.wall_s);
      times.same = times.same && one.same();
    }));
    EAGLE_RETURN_IF_ERROR(session.close());
  }
  std::uint64_t different = 0;
  Json list = Json::array();
  Table table({{"REQUEST", Table::Align::right},
               {"KIND"},
               {"GRAPH", Table::Align::left, 24},
               {"THEN"},
               {"NOW"},
               {"TOOK", Table::Align::right},
               {asked.rounds > 1 ? "MIN / MEDIAN NOW" : "TAKES NOW", Table::Align::right},
               {"VERDICT", Table::Align::left, 60}});
  for (const auto& [number, times] : all) {
    different += times.same ? 0 : 1;
    if (options.json) {
      Json one = to_json(times.first);
      one["seconds"] = times.seconds;
      list.push_back(std::move(one));
    } else if (asked.all || !times.same || times.first.kind == "launch" || times.first.kind == "run" ||
               !times.first.finished) {
      table.add({std::to_string(number), times.first.kind, times.first.graph,
                 times.first.finished ? outcome_text(times.first.recorded_reason) : "-",
                 outcome_text(times.first.reason), seconds_text(times.first.recorded_s),
                 times_text(times.seconds), verdict_of(times.first)});
    }
  }
  const bool bits = asked.verify && contents.with_contents;
  if (options.json) {
    print_json({{"recording", to_json(contents)},
                {"verified", bits},
                {"rounds", asked.rounds},
                {"elsewhere", elsewhere},
                {"different", different},
                {"requests", std::move(list)}});
  } else {
    if (!table.empty()) std::cout << table.text() << '\n';
    for (const auto& [number, times] : all) {
      if (times.same || times.first.recorded_reason == times.first.reason) continue;
      std::cout << "request " << number << " then: " << view::escaped(times.first.recorded_message)
                << "\nrequest " << number << " now:  " << view::escaped(times.first.message) << "\n\n";
    }
    for (const auto& [device, why] : elsewhere) {
      std::cout << "arrays of " << view::escaped(device)
                << " lay in memory of the host, and their graphs ran on "
                << "its CPU: " << view::escaped(why) << '\n';
    }
    std::cout << plural(all.size(), "request") << " replayed, " << count_text(different)
              << " not as recorded; bits "
              << (bits           ? "compared"
                  : asked.verify ? "not compared: the recording has no contents (--with-contents)"
                                 : "not compared (--verify)")
              << '\n';
  }
  return different == 0 ? Exit::well : Exit::unwell;
}

}  // namespace

void add_replay_commands(CLI::App& app, Chosen& chosen) {
  CLI::App* const record_command =
      app.add_subcommand("record", "Runs a program and writes down what its sessions ask for");
  const auto recording = std::make_shared<RecordOptions>();
  record_command
      ->add_option("FILE", recording->file, "The file of its first session; the others get FILE.2, ...")
      ->required();
  record_command
      ->add_option("PROGRAM", recording->program, "What to run, with its arguments (put -- before it)")
      ->required();
  record_command->add_flag("--with-contents", recording->contents,
                           "Also what arrays hold: needed to reproduce values, and as large as they are");
  record_command
      ->add_option("--most-bytes", recording->most_bytes,
                   "Size at which a file ends, as 512M or 4G (default 4G)")
      ->transform(CLI::AsSizeValue(false));
  record_command->final_callback([&chosen, recording] {
    chosen.command = [recording](const Options& options) { return record_program(options, *recording); };
  });

  CLI::App* const replay_command =
      app.add_subcommand("replay", "Makes the requests of a recording again and compares what comes of them");
  const auto asked = std::make_shared<ReplayOptions>();
  replay_command->add_option("FILE", asked->file, "A recording")->required();
  replay_command->add_flag("--info", asked->info, "Only say what it holds");
  replay_command->add_flag("--verify", asked->verify,
                           "Compare the bits of arrays after every launch and run");
  replay_command->add_flag("--in-process", asked->in_process, "Replay in this process, without a daemon");
  replay_command->add_flag("--on-host", asked->on_host,
                           "Put arrays of GPUs into memory of the host, so that the CPU computes");
  replay_command->add_flag("--all", asked->all,
                           "List every request, not only launches, runs and differences");
  replay_command->add_option("--threads", asked->threads, "Of the team, with --in-process (0: what there is)")
      ->check(CLI::Range(0, 1024));
  replay_command->add_option("--rounds", asked->rounds, "So many times, each in a session of its own")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  replay_command
      ->add_option("--most-bytes", asked->most_bytes,
                   "Memory that its planes may take, as 512M or 4G (0: half of the machine's)")
      ->transform(CLI::AsSizeValue(false));
  replay_command->final_callback([&chosen, asked] {
    chosen.command = [asked](const Options& options) { return replay(options, *asked); };
  });
}

}  // namespace eagle::ctl
