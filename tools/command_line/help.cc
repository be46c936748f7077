#include "tools/command_line/help.h"

#include <algorithm>
#include <sstream>

namespace hippodrome {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kLongestLabel = 24;  // beside its meaning
constexpr size_t kLongestValue = 23;  // that stands in a label

// Appends `text` in words to a line that is `at` columns long already; further lines begin at
// column `indent`.
void Fill(const std::string& text, size_t indent, size_t at, std::string& out) {
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (std::string value; word == "(default:" && words >> value) word += " " + value;
    if (!first && at + 1 + word.size() > kColumns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
  out += '\n';
}

std::string Paragraphs(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    out += '\n';
    Fill(line, 0, 0, out);
  }
  return out;
}

std::string CommaSeparated(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// A value of many alternatives is a NAME, and its meaning ends with them.
HelpEntry Entry(const Option& option) {
  HelpEntry entry = {"--" + option.name, option.meaning};
  if (option.value.size() > kLongestValue) {
    entry.label += " NAME";
    entry.meaning += ", one of: " + CommaSeparated(Alternatives(option.value));
  } else if (!option.value.empty()) {
    entry.label += " " + option.value;
  }
  if (!option.fallback.empty()) entry.meaning += " (default: " + option.fallback + ")";
  return entry;
}

}  // namespace

std::string HelpTitle(const std::string& summary, const std::vector<std::string>& usage,
                      const std::string& description) {
  std::string out = summary + "\n\nUsage:\n";
  for (const std::string& form : usage) {
    out += "  ";
    Fill(form, 6, 2, out);
  }
  return out + Paragraphs(description);
}

std::string HelpSection(const std::string& title, const std::vector<HelpEntry>& entries) {
  if (entries.empty()) return "";
  size_t longest = 0;
  for (const HelpEntry& entry : entries) {
    if (entry.label.size() <= kLongestLabel) longest = std::max(longest, entry.label.size());
  }
  const size_t column = longest == 0 ? 4 : longest + 4;
  std::string out = "\n" + title + ":\n";
  for (const HelpEntry& entry : entries) {
    out += "  " + entry.label;
    const bool beside = entry.label.size() <= kLongestLabel;
    out += beside ? std::string(column - 2 - entry.label.size(), ' ')
                  : '\n' + std::string(column, ' ');
    Fill(entry.meaning, column, column, out);
  }
  return out;
}

std::string HelpExitStatus() {
  return HelpSection("Exit status",
                     {{"0", "success"},
                      {"1", "failure: standard error says what, where, and what was expected"},
                      {"2", "wrong usage"}});
}

HelpEntry HelpOptionEntry() { return {"-h, --help", "print this help and exit"}; }

std::string HelpText(const CommandSpec& spec) {
  std::vector<std::string> usage;
  for (const std::string& form : spec.usage) {
    usage.push_back("hippodrome " + spec.name + " " + form);
  }
  std::vector<HelpEntry> arguments;
  for (const Argument& argument : spec.arguments) {
    arguments.push_back({argument.name, argument.meaning});
  }
  std::vector<HelpEntry> options;
  for (const Option& option : spec.options) options.push_back(Entry(option));
  options.push_back(HelpOptionEntry());
  return HelpTitle(spec.summary, usage, spec.description) + HelpSection("Arguments", arguments) +
         HelpSection("Options", options) + HelpExitStatus();
}

std::vector<std::string> Alternatives(const std::string& value) {
  std::vector<std::string> words;
  std::istringstream parts(value);
  for (std::string word; std::getline(parts, word, '|');) words.push_back(word);
  return words;
}

Option ModelOption() { return {"model", "DIR", "model directory"}; }

Option WeightsOption(const std::string& fallback) {
  return {"weights", "f32|bf16|int8|int4",
          std::string("type of the matrices") +
              (fallback.empty() ? " (default: as stored; integers as bf16 on a GPU)" : ""),
          fallback};
}

Option DeviceOption(const std::string& fallback) {
  return {"device", "auto|cpu|cuda", "where to compute; auto: on a GPU if there is one", fallback};
}

Option ThreadsOption() {
  return {"threads", "N", "threads that compute on processors; 0: one per core", "0"};
}

Option PinOption() {
  return {"pin", "",
          "each of these threads stays on a processor of its own, of those that the process may "
          "use: first one of each core, then their SMT siblings"};
}

Option NumaNodeOption() {
  return {"numa-node", "N",
          "the process stays on the processors of this NUMA node, and takes memory from it while "
          "it has some; 'hippodrome inspect --machine' lists them (default: all nodes)"};
}

Option AttentionWindowOption() {
  return {
      "attention-window", "N",
      "tokens before a new one that attention layers see at least, 64 or more; what lies before "
      "is dropped, so that a text may go on without end. An approximation: longer texts are "
      "not what the model makes of them; 0: they see all",
      "0"};
}

Option H3StateOption() {
  return {"h3-state", "f32|bf16",
          "type of what H3 layers keep of a sequence; bf16 takes three fifths of the memory and "
          "rounds, on processors. Other layers keep f32",
          "f32"};
}

Option SpeculateOption() {
  return {"speculate", "",
          "try several tokens in a step where the text so far suggests them: the same tokens, "
          "sooner where texts repeat themselves; of H3 and attention layers, on processors"};
}

Option DraftOption() {
  return {"draft", "DIR",
          "the same with what a smaller model says that has the same tokens, in place of what the "
          "text suggests (default: there is none)"};
}

Option JsonOption() { return {"json", "FILE", "also write the result there, as JSON"}; }

}  // namespace hippodrome
