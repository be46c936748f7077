#include "server/json/json_parse.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr size_t kMaxLevels = 64;
constexpr int64_t kMaxParts = 65536;
// Of a name that an error repeats.
constexpr size_t kShownBytes = 64;

// The library's message repeats what it has read, which may be the whole body.
const char* Reason(const std::string& message) {
  if (message.find("surrogate") != std::string::npos) {
    return ", a \\u escape of half a surrogate pair";
  }
  if (message.find("UTF-8") != std::string::npos) return ", bytes that are not UTF-8";
  return "";
}

// The receiver of Json::sax_parse(), which builds the value and stops at what costs too much. Its
// functions return false to end the parse; status() says why.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(const char* what) : what_(what) {}

  // REQUIRES: the parse was successful.
  Json& value() { return root_; }
  const absl::Status& status() const { return status_; }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override { return Add(value); }
  bool string(std::string& value) override { return Count() && Add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // JSON as text has none
  bool start_object(size_t) override { return Begin(Json::object()); }
  bool end_object() override { return End(); }
  bool start_array(size_t) override { return Begin(Json::array()); }
  bool end_array() override { return End(); }
  bool key(std::string& name) override;
  bool parse_error(size_t position, const std::string& last_token,
                   const Json::exception& error) override;

 private:
  bool Add(Json value) { return Put(std::move(value)) != nullptr; }
  // Where `value` now stands.
  Json* Put(Json value);
  bool Begin(Json container);
  bool End();
  // Counts what takes memory of its own.
  bool Count();
  bool Fail(const std::string& message);

  const std::string what_;
  Json root_;
  std::vector<Json*> open_;  // from the root to the innermost one
  Json* member_ = nullptr;   // of the innermost object, whose value comes next
  int64_t parts_ = 0;
  absl::Status status_;
};

bool JsonBuilder::Fail(const std::string& message) {
  status_ = InvalidArgument(what_ + " " + message);
  return false;
}

bool JsonBuilder::Count() {
  if (++parts_ <= kMaxParts) return true;
  return Fail("has more than " + std::to_string(kMaxParts) +
              " strings, members, arrays and objects");
}

// A pointer into an array stays: while one of its elements is open, nothing is added to it.
Json* JsonBuilder::Put(Json value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return &root_;
  }
  Json& parent = *open_.back();
  if (parent.is_array()) {
    parent.push_back(std::move(value));
    return &parent.back();
  }
  *member_ = std::move(value);
  return member_;
}

bool JsonBuilder::Begin(Json container) {
  if (open_.size() == kMaxLevels) {
    return Fail("has more than " + std::to_string(kMaxLevels) + " levels of nesting");
  }
  if (!Count()) return false;
  open_.push_back(Put(std::move(container)));
  return true;
}

bool JsonBuilder::End() {
  open_.pop_back();
  return true;
}

bool JsonBuilder::key(std::string& name) {
  if (!Count()) return false;
  const auto [member, added] = open_.back()->emplace(name, nullptr);
  member_ = &*member;
  if (added) return true;
  status_ = FieldError(name.substr(0, kShownBytes), "it is there twice");
  return false;
}

bool JsonBuilder::parse_error(size_t position, const std::string&, const Json::exception& error) {
  const std::string_view what = error.what();
  if (what.find("out of range") != std::string_view::npos || error.id == 406) {
    return Fail("is not valid JSON: a number is out of range, near byte " +
                std::to_string(position));
  }
  return Fail("is not valid JSON: error at byte " + std::to_string(position) +
              Reason(std::string(what)));
}

}  // namespace

absl::StatusOr<Json> ParseObject(const std::string& text, const char* what) {
  JsonBuilder builder(what);
  if (!Json::sax_parse(text, &builder)) return builder.status();
  if (!builder.value().is_object()) {
    return InvalidArgument(std::string(what) + " must be a JSON object");
  }
  return std::move(builder.value());
}

LongestString FindLongestString(std::string_view text, std::string_view name) {
  std::string_view longest;
  for (size_t quote = text.find('"'); quote != text.npos; quote = text.find('"', quote)) {
    const size_t begin = quote + 1;
    size_t end = begin;
    for (;; end += 2) {  // what is escaped is no end
      end = std::min(text.find_first_of("\"\\", end), text.size());
      if (end == text.size() || text[end] == '"') break;
    }
    if (end - begin > longest.size()) longest = text.substr(begin, end - begin);
    quote = std::min(end + 1, text.size());
  }
  if (longest.empty()) return {};
  std::string_view before = text.substr(0, static_cast<size_t>(longest.data() - text.data()) - 1);
  for (const char* end : {":", "\""}) {
    while (!before.empty() && std::strchr(" \t\r\n", before.back())) before.remove_suffix(1);
    if (!before.ends_with(end)) return {longest, false};
    before.remove_suffix(1);
  }
  const bool is_member = before.ends_with(name) && before.size() > name.size() &&
                         before[before.size() - name.size() - 1] == '"';
  return {longest, is_member};
}

}  // namespace hippodrome
