#!/bin/sh
# Print the state of a Git repository: git-state.sh [FOLDER]
set -eu
cd "${1:-.}"
if ! top=$(git rev-parse --show-toplevel 2>/dev/null); then
    echo "error: not a Git repository: $(pwd)" >&2
    exit 1
fi
echo "repository: $top"
echo "branch: $(git symbolic-ref --short -q HEAD || echo "none (detached)")"
if upstream=$(git rev-parse --abbrev-ref --symbolic-full-name '@{upstream}' 2>/dev/null); then
    echo "upstream: $upstream, $(git rev-list --count '@{upstream}..HEAD') to push, $(git rev-list --count 'HEAD..@{upstream}') to pull"
else
    echo "upstream: none"
fi
changes=$(git status --porcelain)
if [ -n "$changes" ]; then
    echo "changes:"
    printf '%s\n' "$changes" | head -n 30
else
    echo "changes: none"
fi
echo "stashes: $(git stash list | wc -l | tr -d ' ')"
if git rev-parse -q --verify HEAD >/dev/null; then
    echo "last commits:"
    git log -5 --format='  %h %ad %an: %s' --date=short
fi
