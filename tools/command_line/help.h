// What a command takes, said once: the parser goes by it, and its help, which the manual page and
// the shell's completion are made from (deploy/man_page, deploy/bash_completion).
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_HELP_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_HELP_H_

#include <string>
#include <vector>

namespace hippodrome {

struct Option {
  std::string name;  // without dashes
  // What stands for its value: "N", "FILE", "DIR", "[NAME=]DIR", or alternatives, "N|max|none",
  // where capitals stand for something and all else for itself. Empty: a switch, which takes no
  // value.
  std::string value;
  std::string meaning;   // with its unit, and a default that is not a value: "(default: ..)"
  std::string fallback;  // the default; empty: none
  bool repeatable = false;
};

struct Argument {
  std::string name;  // as an option's value
  std::string meaning;
  bool optional = false;
  bool repeatable = false;  // the last one: any number of it
};

// All of what a command takes, --help apart. Texts may be of any width.
struct CommandSpec {
  std::string name;                 // its words behind the program's: "eval squad"
  std::string summary;              // what it does, a sentence
  std::vector<std::string> usage;   // its forms: what stands behind the name
  std::string description;          // paragraphs, one a line
  std::vector<Argument> arguments;  // positional, the optional ones last
  std::vector<Option> options;
};

// A line of a list: a label and what it means.
struct HelpEntry {
  std::string label;
  std::string meaning;
};

// The style of all help, in 80 columns: the summary; "Usage:", a line for each form, behind
// "hippodrome"; paragraphs; then sections of entries and "Exit status:". A section is its title and
// a colon; an entry is its label, two columns in, and its meaning two or more columns further or on
// lines of its own, four or more columns in.
std::string HelpText(const CommandSpec& spec);

// The pieces of the style, for what has commands instead of options.
std::string HelpTitle(const std::string& summary, const std::vector<std::string>& usage,
                      const std::string& description);
std::string HelpSection(const std::string& title, const std::vector<HelpEntry>& entries);
std::string HelpExitStatus();
// Of --help itself.
HelpEntry HelpOptionEntry();

// "a|b|c" as a, b and c.
std::vector<std::string> Alternatives(const std::string& value);
// "1,32", for defaults.
template <typename Numbers>
std::string CommaList(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

// Options of many commands, read by the getters of CommandLine. `fallback`: empty for as stored.
Option ModelOption();
Option WeightsOption(const std::string& fallback = "");
Option DeviceOption(const std::string& fallback = "auto");
Option ThreadsOption();
Option PinOption();
Option NumaNodeOption();
Option AttentionWindowOption();
Option H3StateOption();
Option SpeculateOption();
Option DraftOption();
Option JsonOption();

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_HELP_H_
