// Reading JSON objects in which every member must be known, so that a misspelt one is an error.
#ifndef HIPPODROME_TOOLS_COMMAND_LINE_STRICT_READER_H_
#define HIPPODROME_TOOLS_COMMAND_LINE_STRICT_READER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/json_object.h"

namespace hippodrome {

// As ObjectReader; in addition remembers which members were asked for.
class StrictReader {
 public:
  StrictReader(const nlohmann::json& object, const std::string& prefix)
      : object_(object), prefix_(prefix), reader_(object_, prefix) {}

  int64_t Integer(const char* name, IntegerRange range, std::optional<int64_t> fallback = {});
  // A number in (0, most].
  double Positive(const char* name, double most, std::optional<double> fallback = {});
  // A number in [0, most].
  double NotNegative(const char* name, double most, double fallback);
  // A number in [0, 1).
  double BelowOne(const char* name, double fallback);
  bool Boolean(const char* name, bool fallback);
  std::string Text(const char* name, const std::string& fallback);
  // An array of strings; nothing when absent.
  std::optional<std::vector<std::string>> Texts(const char* name);
  // A string that is not empty, or an array of at least one such string; empty when absent.
  std::vector<std::string> TextOrTexts(const char* name);
  // The object, or an empty one when absent.
  const nlohmann::json& Object(const char* name);
  // The member, or null when it is absent or JSON null.
  const nlohmann::json* Find(const char* name);

  // Notes the error "NAME is VALUE, expected WHAT".
  void Reject(const char* name, const std::string& what) { reader_.Reject(name, what); }
  const absl::Status& status() const { return reader_.status(); }
  // The first error; without one, an error if the object has members that nobody asked for.
  absl::Status Finish() const;

 private:
  const char* Know(const char* name);

  const nlohmann::json& object_;
  const std::string prefix_;
  ObjectReader reader_;
  std::vector<std::string> known_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMAND_LINE_STRICT_READER_H_
