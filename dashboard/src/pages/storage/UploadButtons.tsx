import { useRef, type ChangeEvent } from 'react';

import { uploads, type UploadTarget } from '../../api/uploads';
import { Button } from '../../components/Button';
import { useText } from '../../i18n/language';
import * as storage from '../../i18n/storage';

/** Buttons that choose files or a folder and upload them. */
export function UploadButtons({ target }: { target: UploadTarget }) {
  const t = useText(storage);
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const chosen = (event: ChangeEvent<HTMLInputElement>, add: (files: readonly File[]) => void) => {
    const list = [...(event.target.files ?? [])];
    event.target.value = '';
    if (list.length > 0) add(list);
  };
  return (
    <>
      <input
        ref={files}
        type="file"
        multiple
        hidden
        data-testid="files"
        aria-label={t.upload}
        onChange={(event) => chosen(event, (list) => uploads.addFiles(list, target))}
      />
      <input
        ref={folder}
        type="file"
        hidden
        data-testid="folder"
        aria-label={t.uploadFolder}
        {...{ webkitdirectory: '' }}
        onChange={(event) => chosen(event, (list) => uploads.addFolder(list, target))}
      />
      <Button onPress={() => folder.current?.click()}>{t.uploadFolder}</Button>
      <Button kind="primary" onPress={() => files.current?.click()}>
        {t.upload}
      </Button>
    </>
  );
}
