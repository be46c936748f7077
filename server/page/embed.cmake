# Writes OUTPUT, a C++ source with the text of the page's files, which lie in FOLDER:
#   cmake -DFOLDER=... -DSCRIPTS=a.js,b.js -DOUTPUT=... -P embed.cmake
file(READ ${FOLDER}/page.html html)
file(READ ${FOLDER}/page.css style)
set(script "")
string(REPLACE "," ";" names ${SCRIPTS})
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name} part)
  string(APPEND script "${part}")
endforeach()
file(WRITE ${OUTPUT} "#include \"server/page/page_sources.h\"

namespace hippodrome {

const std::string_view kPageHtml = R\"page(${html})page\";
const std::string_view kPageStyle = R\"page(${style})page\";
const std::string_view kPageScript = R\"page(${script})page\";

}  // namespace hippodrome
")
