// Documents that a language model is evaluated on, out of published files.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_DOCUMENTS_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_DOCUMENTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/lm/expression.h"

namespace hippodrome {

enum class DocumentForm : uint8_t {
  kJson,      // an object in each line, empty lines skipped; or one array of objects
  kText,      // {"text": ..}: what stands between lines "<|endoftext|>"
  kWikiText,  // {"page": ..}: from each heading of a page, " = Title = ", to the next
};

struct NumberedDocument {
  int64_t line = 0;  // where it begins
  Document document;
};

// Errors: kInvalidArgument with the line, or where there are no documents.
absl::StatusOr<std::vector<NumberedDocument>> ReadDocuments(std::string_view text,
                                                            DocumentForm form);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_DOCUMENTS_H_
