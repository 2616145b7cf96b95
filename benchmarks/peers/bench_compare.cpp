// Compares tenet with other libraries, work by work: each pair in turns, in one run of this program.
#include "environment.hpp"
#include "report.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <regex>
#include <stdexcept>

using namespace bench;

struct Options {
  std::string filter = ".", svg;
  std::vector<std::string> peers;
  int pairs = 15, threads = 1;
  bool json = false;
};

/// Measures a pair and shows it. False if the libraries' results differ or tenet fails.
static bool run_pair(const Case& tenet, const Case& theirs, const std::string& peer, const Options& options,
                     std::vector<Row>& rows) {
  Run opponent;
  try {
    opponent = theirs.prepare();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: left out, %s: %s\n", tenet.work.name.c_str(), peer.c_str(), e.what());
    return true;
  }
  try {
    rows.push_back({tenet.work, peer, measure(tenet.work, tenet.prepare(), opponent, options.pairs, options.threads)});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s, %s: %s\n", tenet.work.name.c_str(), peer.c_str(), e.what());
    return false;
  }
  (options.json ? print_json : print_row)(rows.back());
  return true;
}

static int run(const Options& options) {
  const std::regex filter(options.filter);
  auto& all = libraries();
  const auto rank = [](const Library& l) { return std::make_pair(l.name != "tenet", l.name); };
  std::sort(all.begin(), all.end(), [=](const Library& a, const Library& b) { return rank(a) < rank(b); });
  for (const Library& library : all) library.set_threads(options.threads);

  const auto environment = describe_environment(options.threads);
  if (!options.json) print_head(environment);
  std::vector<Row> rows;
  bool good = true;
  for (const Case& tenet : all[0].cases) {
    if (!std::regex_search(tenet.work.name, filter)) continue;
    for (std::size_t i = 1; i < all.size(); ++i) {
      const auto& wanted = options.peers;
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), all[i].name) == wanted.end()) continue;
      for (const Case& theirs : all[i].cases) {
        if (theirs.work.name == tenet.work.name) good &= run_pair(tenet, theirs, all[i].name, options, rows);
      }
    }
  }
  if (good && rows.empty()) throw std::runtime_error("no work to compare: nothing matches, or no peer can do it");
  if (!options.json) print_summary(rows);
  if (!options.svg.empty()) write_svg(options.svg, rows, environment);
  return good ? 0 : 1;
}

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Compares tenet with the libraries that were found when this was built.");
  app.add_option("--filter", options.filter, "Regular expression of the work's name");
  app.add_option("--peer", options.peers, "Only these peers");
  app.add_option("--pairs", options.pairs, "Pairs of samples a row")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of every library")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--svg", options.svg, "Write a chart of the ratios into this file");
  app.add_flag("--json", options.json, "One object a line instead of the table");
  CLI11_PARSE(app, argc, argv);

  prepare_environment(argv, options.threads);
  if (options.threads == 1) pin();
  try {
    return run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_compare: %s\n", e.what());
    return 2;
  }
}
