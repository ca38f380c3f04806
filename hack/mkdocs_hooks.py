"""Hooks of mkdocs: links to files outside of docs lead to the repository."""

import os
import re

LINK = re.compile(r"\]\(((?:\.\./)+[^)\s]+)\)")


def on_page_markdown(markdown, page, config, files):
    """Rewrites relative links that leave the directory of the documentation."""
    here = os.path.dirname(page.file.src_path)

    def rewrite(match):
        path = os.path.normpath(os.path.join("docs", here, match.group(1)))
        if path.startswith("docs" + os.sep) or path.startswith(".."):
            return match.group(0)
        return "](%s/blob/main/%s)" % (config["repo_url"].rstrip("/"), path)

    return LINK.sub(rewrite, markdown)
