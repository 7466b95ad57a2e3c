#!/usr/bin/env bash
# publish.sh FOLDER publishes the files that make dist wrote from a tag. docs/release.md describes its variables.
set -euo pipefail
cd "$1"
steps=${STEPS:-github image npm pypi maven}
run() { ${RUN:-} "$@"; }
fail() {
  echo "publish: $*" >&2
  exit 2
}

# Everything is checked before the first file is published.
archives=(tabletop_*_*_*.tar.gz tabletop_*_*_*.zip)
[ ${#archives[@]} -eq 6 ] || fail "$PWD has ${#archives[@]} archives, not those of six platforms: run make dist"
version=${archives[0]#tabletop_}
version=${version%%_*}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-rc\.[0-9]+)?$ ]] || fail "$version is not a tag: run make dist on the commit of a tag such as v0.1.0"
sha256sum --check --quiet SHA256SUMS
declare -A needs=([github]=gh [image]=crane [npm]=npm [pypi]=twine [maven]="gpg zip")
for step in $steps; do
  [ -n "${needs[$step]:-}" ] || fail "STEPS: $step must be github, image, npm, pypi or maven"
  for program in ${needs[$step]}; do
    [ -n "${RUN:-}" ] || command -v "$program" >/dev/null || fail "$step needs $program"
  done
done
[[ $steps != *image* ]] || [ -n "${IMAGE:-}" ] || fail "name the image: IMAGE=REGISTRY/OWNER/tabletop"
[[ $steps != *maven* ]] || [ -n "${MAVEN_UPLOAD:-}" ] || fail "name the command that uploads a bundle: MAVEN_UPLOAD=command"

for step in $steps; do
  echo "== $step" >&2
  case $step in
    github)
      run gh release create "v$version" --verify-tag --generate-notes "${archives[@]}" ./*.cdx.json ./*image_*.tar SHA256SUMS
      ;;
    image)
      run crane push image "$IMAGE:$version"
      run crane push compat-image "$IMAGE:$version-compat"
      [[ $version == *-* ]] || run crane tag "$IMAGE:$version" latest
      [[ $version == *-* ]] || run crane tag "$IMAGE:$version-compat" compat
      ;;
    npm) # those of the platforms first: the main package depends on them
      tag=latest
      [[ $version != *-* ]] || tag=next
      for package in npm/tabletop-emu-[a-z]*.tgz npm/tabletop-emu-[0-9]*.tgz; do
        run npm publish --access public --tag "$tag" "./$package"
      done
      ;;
    pypi)
      run twine upload pypi/*.whl
      ;;
    maven)
      find maven -name '*.jar' -o -name '*.pom' | LC_ALL=C sort | while read -r file; do
        run gpg --batch --yes --armor --detach-sign "$file"
      done
      (cd maven && run zip -q -r -FS ../maven-bundle.zip io)
      run $MAVEN_UPLOAD maven-bundle.zip
      ;;
  esac
done
